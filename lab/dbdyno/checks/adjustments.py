"""Known adjustments of servers: rounding and clipping.

Servers round some values to a multiple of a step, which is too small a change to matter. They clip other
values to a range, which changes the experiment. The steps and ranges are those of MariaDB 10.11 ("Server
System Variables" in its manual), verified on a running server.
"""

from __future__ import annotations

from collections.abc import Mapping
from decimal import Decimal

from dbdyno.experiment.quantities import number
from dbdyno.text import compose

# Sizes that the server rounds down to a multiple of this number of bytes.
_STEP_BYTES = {
    "aria_log_file_size": 8192,
    "binlog_cache_size": 4096,
    "binlog_stmt_cache_size": 4096,
    "innodb_log_buffer_size": 4096,
    "innodb_log_file_size": 4096,
    "join_buffer_size": 128,
    "key_buffer_size": 4096,
    "max_allowed_packet": 1024,
    "max_binlog_size": 4096,
    "max_heap_table_size": 16384,
    "query_alloc_block_size": 1024,
    "query_cache_size": 1024,
    "query_prealloc_size": 1024,
    "range_alloc_block_size": 1024,
    "read_buffer_size": 4096,
    "slave_max_allowed_packet": 1024,
    "stored_program_cache": 256,
    "thread_stack": 1024,
    "tmp_memory_table_size": 16384,
    "tmp_table_size": 16384,
    "transaction_alloc_block_size": 1024,
    "transaction_prealloc_size": 1024,
}

# Rounding by less than this share of the value has no measurable effect.
ROUNDING_SHARE = Decimal("0.01")

_MIB = 1024 * 1024

# Variable -> the values that the server allows, or why it changes the declared value.
_RULES = {
    "back_log": compose("0, or no value, lets the server derive it from max_connections"),
    "innodb_buffer_pool_instances": compose(
        "MariaDB accepts it and ignores it since 10.5; MySQL uses 1 if the pool is smaller than 1G"
    ),
    "innodb_buffer_pool_size": compose("a multiple of innodb_buffer_pool_chunk_size, or of 1M if that is 0"),
    "innodb_flush_log_at_trx_commit": compose("0 to 3"),
    "innodb_io_capacity": compose("at most innodb_io_capacity_max, and at least 100"),
    "innodb_log_buffer_size": compose("at least 2M"),
    "innodb_lru_scan_depth": compose("at least 100"),
    "innodb_open_files": compose("at most table_open_cache and open_files_limit"),
    "innodb_read_io_threads": compose("1 to 64"),
    "innodb_write_io_threads": compose("2 to 64"),
    "interactive_timeout": compose("1 to 31536000 s"),
    "max_connections": compose("10 to 100000, and lower if open_files_limit is too small"),
    "open_files_limit": compose(
        "at most the limit of the process (ulimit -n), at least what connections need"
    ),
    "read_buffer_size": compose("8192 to 2147479552, a multiple of 4096"),
    "sort_buffer_size": compose("at least 1024"),
    "table_definition_cache": compose("400 to 2097152"),
    "table_open_cache": compose("10 to 1048576, and at most half of the files that open_files_limit leaves"),
    "thread_cache_size": compose("at most 16384, and lowered to fit max_connections"),
    "thread_pool_size": compose("1 to 100000"),
    "thread_stack": compose("131072 to 67108864, a multiple of 1024"),
    "tmp_table_size": compose("a multiple of 16384, rounded down; less than 16384 becomes 0"),
    "wait_timeout": compose("1 to 31536000 s"),
}


def rounding(name: str, declared: str, variables: Mapping[str, str]) -> str | None:
    """How the server rounded `declared` to its effective value; None if the change is not a known rounding.

    `variables` are all variables of the server. A change of one step or more, or of 1 % or more, is not
    rounding.
    """
    requested, effective = number(declared), number(variables[name])
    step = _step_bytes(name, variables)
    if requested is None or effective is None or step is None:
        return None
    change = abs(effective - requested)
    if change >= step or change >= ROUNDING_SHARE * requested or effective % step:
        return None
    return compose("rounded to a multiple of {step}", step=step)


def rule(name: str) -> str | None:
    """The values that the server allows for a variable; None if unknown."""
    return _RULES.get(name)


def _step_bytes(name: str, variables: Mapping[str, str]) -> int | None:
    if name != "innodb_buffer_pool_size":
        return _STEP_BYTES.get(name)
    # The server rounds up to a multiple of chunk size times instances. In newer MariaDB the chunk size is 0,
    # and the multiple is 1 MiB.
    chunk = number(variables.get("innodb_buffer_pool_chunk_size", "0")) or Decimal(0)
    instances = number(variables.get("innodb_buffer_pool_instances", "1")) or Decimal(1)
    return int(chunk * instances) or _MIB
