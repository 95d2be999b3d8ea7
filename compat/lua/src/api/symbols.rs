//! The global `ffi`, and the functions that sysbench exports to it.
//!
//! In sysbench, `ffi.C` finds C functions of sysbench's executable. Here `ffi.C` is a table with pointers to the functions
//! below, and all other symbols come from the real `ffi.C`. The functions receive only their C arguments, so they find
//! their user by [`current`].

// Functions with a C interface, which scripts call through pointers.
#![allow(unsafe_code)]

use std::ffi::{CStr, c_char, c_int, c_void};

use mlua::{Function, LightUserData, Lua, Table};

use super::rand::{self, DistributionName};
use super::{events, histogram::Histogram};
use crate::compile;
use crate::context::{Context, Counter, current};
use crate::raw::{self, NO_RESULT};
use dbdyno_sysbench::Compat;

const CODE: &str = include_str!("lua/symbols.lua");

extern "C" fn sb_counter_inc(_user: c_int, counter: c_int) {
    if let (Some(context), Some(counter)) = (current(), Counter::from_number(counter.into())) {
        context.count(counter);
    }
}

extern "C" fn sb_counter_val(_user: c_int, counter: c_int) -> u64 {
    match (current(), Counter::from_number(counter.into())) {
        (Some(context), Some(counter)) => context.counter(counter),
        _ => 0,
    }
}

macro_rules! distributions {
    ($($symbol:ident => $name:ident),*) => {$(
        extern "C" fn $symbol(low: u32, high: u32) -> u32 {
            current().map_or(low, |context| rand::draw(&context, DistributionName::$name, low, high))
        }
    )*};
}
distributions!(
    sb_rand_default => Default,
    sb_rand_uniform => Uniform,
    sb_rand_gaussian => Gaussian,
    sb_rand_special => Special,
    sb_rand_pareto => Pareto,
    sb_rand_zipfian => Zipfian
);

extern "C" fn sb_rand_unique() -> u32 {
    rand::unique()
}

extern "C" fn sb_rand_uniform_uint64() -> u64 {
    current().map_or(0, |context| context.rng.borrow_mut().bits())
}

extern "C" fn sb_rand_uniform_double() -> f64 {
    current().map_or(0.0, |context| context.rng.borrow_mut().unit())
}

/// # Safety
/// `format` is NUL-terminated, and `to` has room for as many bytes.
unsafe extern "C" fn sb_rand_str(format: *const c_char, to: *mut c_char) {
    if format.is_null() || to.is_null() {
        return;
    }
    // SAFETY: guaranteed by the caller.
    unsafe {
        write_random_text(to, |context, text| {
            rand::append(&mut context.rng.borrow_mut(), CStr::from_ptr(format).to_bytes(), text)
        })
    };
}

/// # Safety
/// `to` has room for `max_length` bytes and one more.
unsafe extern "C" fn sb_rand_varstr(to: *mut c_char, min_length: u32, max_length: u32) -> u32 {
    if to.is_null() || min_length > max_length {
        return 0;
    }
    // SAFETY: guaranteed by the caller.
    unsafe {
        write_random_text(to, |context, text| {
            rand::append_varstring(&mut context.rng.borrow_mut(), min_length, max_length, text)
        })
    }
}

/// Copies the text that `append` writes to `to`, which must have room for it, and returns the text's length.
unsafe fn write_random_text(to: *mut c_char, append: impl FnOnce(&Context, &mut Vec<u8>)) -> u32 {
    let mut text = Vec::new();
    if let Some(context) = current() {
        append(&context, &mut text);
    }
    // SAFETY: guaranteed by the caller; the text is a local value.
    unsafe { std::ptr::copy_nonoverlapping(text.as_ptr().cast(), to, text.len()) };
    text.len() as u32
}

extern "C" fn sb_histogram_new(size: u64, min: f64, max: f64) -> *mut Histogram {
    Histogram::new(size, min, max)
        .map_or(std::ptr::null_mut(), |histogram| Box::into_raw(Box::new(histogram)))
}

/// # Safety
/// `histogram` is null, or comes from `sb_histogram_new` and is not used again.
unsafe extern "C" fn sb_histogram_delete(histogram: *mut Histogram) {
    if !histogram.is_null() {
        // SAFETY: guaranteed by the caller.
        drop(unsafe { Box::from_raw(histogram) });
    }
}

/// # Safety
/// `histogram` is null or comes from `sb_histogram_new`.
unsafe extern "C" fn sb_histogram_update(histogram: *mut Histogram, value: f64) {
    // SAFETY: guaranteed by the caller.
    if let Some(histogram) = unsafe { histogram.as_mut() } {
        histogram.update(value);
    }
}

/// # Safety
/// As for `sb_histogram_update`.
unsafe extern "C" fn sb_histogram_print(histogram: *const Histogram) {
    // SAFETY: guaranteed by the caller.
    if let (Some(histogram), Some(context)) = (unsafe { histogram.as_ref() }, current()) {
        let text = histogram.text();
        if !text.is_empty() {
            context.host.print(&text);
        }
    }
}

/// Name, C type and address of every exported function.
fn symbols(compat: Compat) -> Vec<(&'static str, &'static str, *const c_void)> {
    const DISTRIBUTION_FUNCTION: &str = "uint32_t (*)(uint32_t, uint32_t)";
    let mut symbols: Vec<(_, _, *const c_void)> = vec![
        ("sb_counter_inc", "void (*)(int, sb_counter_type)", sb_counter_inc as _),
        ("sb_counter_val", "uint64_t (*)(int, sb_counter_type)", sb_counter_val as _),
        ("sb_rand_default", DISTRIBUTION_FUNCTION, sb_rand_default as _),
        ("sb_rand_uniform", DISTRIBUTION_FUNCTION, sb_rand_uniform as _),
        ("sb_rand_gaussian", DISTRIBUTION_FUNCTION, sb_rand_gaussian as _),
        ("sb_rand_pareto", DISTRIBUTION_FUNCTION, sb_rand_pareto as _),
        ("sb_rand_unique", "uint32_t (*)(void)", sb_rand_unique as _),
        ("sb_rand_uniform_uint64", "uint64_t (*)(void)", sb_rand_uniform_uint64 as _),
        ("sb_rand_uniform_double", "double (*)(void)", sb_rand_uniform_double as _),
        ("sb_rand_str", "void (*)(const char *, char *)", sb_rand_str as _),
        ("sb_histogram_new", "sb_histogram_t *(*)(size_t, double, double)", sb_histogram_new as _),
        ("sb_histogram_delete", "void (*)(sb_histogram_t *)", sb_histogram_delete as _),
        ("sb_histogram_update", "void (*)(sb_histogram_t *, double)", sb_histogram_update as _),
        ("sb_histogram_print", "void (*)(sb_histogram_t *)", sb_histogram_print as _),
    ];
    match compat {
        Compat::V1_0 => symbols.push(("sb_rand_special", DISTRIBUTION_FUNCTION, sb_rand_special as _)),
        Compat::V1_1 => {
            symbols.push(("sb_rand_zipfian", DISTRIBUTION_FUNCTION, sb_rand_zipfian as _));
            let varstr_type = "uint32_t (*)(char *, uint32_t, uint32_t)";
            symbols.push(("sb_rand_varstr", varstr_type, sb_rand_varstr as _));
        }
    }
    symbols
}

pub(super) fn install(lua: &Lua, context: &Context) -> mlua::Result<()> {
    let table = lua.create_table()?;
    for (name, kind, address) in symbols(context.config.compat) {
        let symbol = lua.create_table()?;
        symbol.push(kind)?;
        symbol.push(LightUserData(address.cast_mut()))?;
        table.set(name, symbol)?;
    }
    let sysbench = lua.globals().get::<Table>("sysbench")?;
    let code: Function = compile::load(lua, "sysbench.histogram.lua", CODE.as_bytes())?;
    let declare_waiting = raw::function(lua, |call| {
        call.context().declares_waiting.set(true);
        NO_RESULT
    })?;
    let set_metatype = raw::function(lua, |call| {
        call.context().sets_metatypes.set(true);
        NO_RESULT
    })?;
    let (event_functions, exported) = (events::symbols(lua)?, crate::sql::exported(lua));
    let is_1_1 = context.config.compat == Compat::V1_1;
    code.call((sysbench, table, event_functions, exported, declare_waiting, set_metatype, is_1_1))
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use crate::context::Counter;
    use crate::testing::{RecordingHost, failure, printed, state};
    use dbdyno_sysbench::Compat;

    #[test]
    fn scripts_can_count_by_ffi() {
        let text = "
            ffi.cdef[[void sb_counter_inc(int, sb_counter_type); uint64_t sb_counter_val(int, sb_counter_type);]]
            for _ = 1, 3 do ffi.C.sb_counter_inc(sysbench.tid, ffi.C.SB_CNT_ERROR) end
            ffi.C.sb_counter_inc(sysbench.tid, 'SB_CNT_READ')
            ffi.C.sb_counter_inc(0, 99)
            print(ffi.C.sb_counter_val(0, ffi.C.SB_CNT_ERROR), tonumber(ffi.C.sb_counter_val(0, 1)), ffi.C.SB_CNT_MAX)
            print(ffi.sizeof('sb_counter_type'), ffi.C == require('ffi').C)";
        let host = Arc::new(RecordingHost::default());
        let state = state(text, &host);
        assert_eq!(*host.printed.lock().unwrap(), "3ULL\t1\t6\n4\ttrue\n");
        assert_eq!(state.context().counter(Counter::Error), 3);
        assert_eq!(state.context().take_script_counts().unwrap()[Counter::Error as usize], 3);
        assert!(state.context().take_script_counts().is_none());
    }

    #[test]
    fn other_symbols_come_from_the_c_library() {
        let text = "
            ffi.cdef[[int abs(int); typedef struct { int x; double y; } point; int snprintf(char *, size_t, const char *, ...);]]
            print(ffi.C.abs(-3), ffi.new('point', 1, 2.5).y, pcall(function() return ffi.C.undeclared end))
            local to = ffi.new('char[20]')
            ffi.C.snprintf(to, 20, '%d %s', ffi.cast('int', 5), 'x') print(ffi.string(to))";
        let expected = "3\t2.5\tfalse\ttest.lua:3: missing declaration for symbol 'undeclared'\n5 x\n";
        assert_eq!(printed(text), expected);
    }

    #[test]
    fn declaring_sleep_functions_is_detected() {
        let waits = |text: &str| state(text, &Arc::default()).context().declares_waiting.get();
        assert!(waits("ffi.cdef[[int usleep(unsigned int usec);]]"));
        assert!(waits("local f = require 'ffi' f.cdef('typedef int t; unsigned sleep (unsigned);')"));
        assert!(waits("ffi.cdef[[int poll(struct pollfd *fds, unsigned long nfds, int timeout);]]"));
        assert!(!waits(
            "ffi.cdef[[int abs(int); typedef struct { int sleep; } usleep_t; void my_usleep(int);]]"
        ));
        let text = format!("{:?}", failure("ffi.cdef('int 5x;')"));
        assert!(text.contains("test.lua:1:"), "{text}");
    }

    #[test]
    fn strings_and_histograms_by_symbol() {
        let text = "
            local to = ffi.new('char[16]', ('?'):rep(15))
            ffi.C.sb_rand_str('a##@', to)
            print(ffi.string(to):match('^a%d%d%l%?+$') ~= nil)
            local h = ffi.C.sb_histogram_new(10, 1, 100)
            ffi.C.sb_histogram_update(h, 5) ffi.C.sb_histogram_print(h) ffi.C.sb_histogram_delete(h)";
        let output = printed(text);
        assert!(output.starts_with("true\n       value  ---") && output.ends_with("* 1\n"), "{output}");
    }

    #[test]
    fn histograms_have_methods() {
        let text = "
            local h = sysbench.histogram.new(10, 1, 100)
            h:print() for i = 1, 4 do h:update(2 ^ i) end h:print()
            print(type(h), tostring(h), tostring(1), ffi.istype('sb_histogram_t', h))
            print((select(2, pcall(h.update, h, {}))))
            print(pcall(sysbench.histogram.new, 5, 0, 1))
            h = nil collectgarbage() collectgarbage()";
        let output = printed(text);
        let mut lines = output.lines();
        assert_eq!(lines.next(), Some("       value  ------------- distribution ------------- count"));
        assert_eq!(lines.clone().take_while(|line| line.ends_with("* 1")).count(), 4);
        let expected =
            ["cdata\t<sb_histogram>\t1\ttrue", "cannot convert 'table' to 'double'", "a histogram must have"];
        for (line, expected) in lines.skip(4).zip(expected) {
            assert!(line.contains(expected), "{line}");
        }
        assert_eq!(output.lines().count(), 8, "{output}");
    }

    #[test]
    fn version_1_1_has_more_counters() {
        let host = Arc::new(RecordingHost { compat: Compat::V1_1, ..RecordingHost::default() });
        state(
            "print(ffi.C.SB_CNT_BYTES_WRITTEN, ffi.C.SB_CNT_MAX) ffi.C.sb_counter_inc(0, 6) print(ffi.C.sb_rand_zipfian(2, 2))",
            &host,
        );
        assert_eq!(*host.printed.lock().unwrap(), "7\t8\n2\n");
    }
}
