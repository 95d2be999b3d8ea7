"""The bundled workload tpcc: 10,000 terminals from one process, and the statements of sysbench-tpcc."""
