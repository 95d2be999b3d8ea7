//! Functions that Lua calls without any wrapper in between.
//!
//! mlua wraps every call of a Rust function with locks, protection and conversions that cost more than what a function
//! such as `sysbench.rand.uniform` does. A [`Raw`] function reads its arguments from Lua's stack and pushes its results.
//!
//! Rules that make this sound, held by [`Call`] being the only way in:
//! - Contexts outlive the state: its functions hold the address of the current one's, and `Vm` drops the state first.
//! - An error is raised in [`enter`] alone, after everything that a function owned is gone: LuaJIT unwinds.
//! - Bytes borrowed from Lua's stack live no longer than the call.

// Lua's C interface is unsafe as a whole.
#![allow(unsafe_code)]

use std::any::TypeId;
use std::cell::Cell;
use std::collections::HashMap;
use std::ffi::{c_int, c_void};
use std::rc::Rc;

use mlua::ffi;
use mlua::{Function, Lua, Value};

use crate::context::Context;
use crate::current::Current;

/// What a raw function returns: how many values it pushed, that it leaves the coroutine, or the text of an error.
pub(crate) type Returns = Result<Pushed, String>;

/// How a function ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Pushed {
    /// With this many values, which were pushed last.
    Values(c_int),
    /// By leaving the coroutine; whoever resumes it says what the call returns.
    Left,
}

/// No value.
pub(crate) const NOTHING: Returns = Ok(Pushed::Values(0));
/// One value.
pub(crate) const ONE: Returns = Ok(Pushed::Values(1));

/// A function for Lua to call.
pub(crate) trait Raw {
    /// Does it.
    fn call(call: &Call) -> Returns;
}

/// One call under way.
pub(crate) struct Call {
    lua: *mut ffi::lua_State,
}

/// The type of values made by `ffi`.
const CDATA: c_int = 10;

unsafe extern "C" {
    /// LuaJIT has it, but mlua does not declare it.
    fn lua_isyieldable(lua: *mut ffi::lua_State) -> c_int;
}

/// The mark of a request that leaves a coroutine, so that it is not taken for the script's own yield.
static MARK: u8 = 0;

fn mark() -> *mut c_void {
    std::ptr::addr_of!(MARK).cast_mut().cast()
}

impl Call {
    /// The context of the user that runs.
    #[inline]
    pub(crate) fn context(&self) -> &Context {
        // SAFETY: `function` put the address there, of a cell that the state's `Functions` keep; a user is current before
        // any function can run, and its context outlives the state.
        unsafe {
            let current =
                ffi::lua_touserdata(self.lua, ffi::lua_upvalueindex(1)).cast::<Cell<*const Context>>();
            &*(*current).get()
        }
    }

    /// Pushes the address of the context, for a function that the collector may call while another user runs.
    pub(crate) fn push_owner(&self) {
        let address = std::ptr::from_ref(self.context()).cast_mut().cast();
        // SAFETY: one slot is free, since Lua grants 20 to a call.
        unsafe { ffi::lua_pushlightuserdata(self.lua, address) }
    }

    /// The context whose address [`Call::push_owner`] made argument `index`.
    pub(crate) fn owner(&self, index: c_int) -> &Context {
        // SAFETY: interface.lua hands on what it was given, and to nobody else; contexts outlive the state.
        unsafe { &*ffi::lua_touserdata(self.lua, index).cast::<Context>() }
    }

    /// How many arguments there are.
    pub(crate) fn count(&self) -> c_int {
        // SAFETY: the state is valid during the call.
        unsafe { ffi::lua_gettop(self.lua) }
    }

    /// Argument `index`, from 1, as a number; strings that are one count. 0 for anything else.
    #[inline]
    pub(crate) fn number(&self, index: c_int) -> f64 {
        // SAFETY: any index is acceptable to lua_tonumber.
        unsafe { ffi::lua_tonumber(self.lua, index) }
    }

    /// The same, as an integer.
    #[inline]
    pub(crate) fn integer(&self, index: c_int) -> i64 {
        self.number(index) as i64
    }

    /// Whether argument `index` is a number, or a string that is one.
    #[inline]
    pub(crate) fn is_number(&self, index: c_int) -> bool {
        // SAFETY: any index is acceptable.
        unsafe { ffi::lua_isnumber(self.lua, index) != 0 }
    }

    /// Argument `index` as a C function takes an unsigned integer of 32 bits: its fraction is cut off, and it wraps.
    ///
    /// # Errors
    /// It is no number; in LuaJIT's words.
    #[inline]
    pub(crate) fn unsigned(&self, index: c_int) -> Result<u32, String> {
        match self.kind(index) {
            ffi::LUA_TNUMBER => Ok(self.number(index) as i64 as u32),
            _ => self.converted(index),
        }
    }

    #[cold]
    fn converted(&self, index: c_int) -> Result<u32, String> {
        // SAFETY: lua_pcall lets no error out, and what is pushed is popped.
        let number = unsafe {
            match ffi::lua_type(self.lua, index) {
                ffi::LUA_TBOOLEAN => Some(f64::from(ffi::lua_toboolean(self.lua, index))),
                CDATA => {
                    ffi::lua_getfield(self.lua, ffi::LUA_GLOBALSINDEX, c"tonumber".as_ptr());
                    ffi::lua_pushvalue(self.lua, index);
                    ffi::lua_pcall(self.lua, 1, 1, 0);
                    let found = (ffi::lua_type(self.lua, -1) == ffi::LUA_TNUMBER)
                        .then(|| ffi::lua_tonumber(self.lua, -1));
                    ffi::lua_pop(self.lua, 1);
                    found
                }
                _ => None,
            }
        };
        number.map(|number| number as i64 as u32).ok_or_else(|| {
            let kind = self.kind_name(index);
            format!("bad argument #{index} to '?' (cannot convert '{kind}' to 'unsigned int')")
        })
    }

    /// The name of the type of argument `index`.
    pub(crate) fn kind_name(&self, index: c_int) -> &'static str {
        match self.kind(index) {
            ffi::LUA_TBOOLEAN => "boolean",
            ffi::LUA_TLIGHTUSERDATA | ffi::LUA_TUSERDATA => "userdata",
            ffi::LUA_TNUMBER => "number",
            ffi::LUA_TSTRING => "string",
            ffi::LUA_TTABLE => "table",
            ffi::LUA_TFUNCTION => "function",
            ffi::LUA_TTHREAD => "thread",
            CDATA => "cdata",
            _ => "nil",
        }
    }

    /// The type of argument `index`, one of `mlua::ffi::LUA_T*`; 10 is a cdata.
    #[inline]
    pub(crate) fn kind(&self, index: c_int) -> c_int {
        // SAFETY: any index is acceptable.
        unsafe { ffi::lua_type(self.lua, index) }
    }

    /// Whether argument `index` is neither nil nor false.
    pub(crate) fn truth(&self, index: c_int) -> bool {
        // SAFETY: any index is acceptable.
        unsafe { ffi::lua_toboolean(self.lua, index) != 0 }
    }

    /// Argument `index`, an integer of `ffi` with 64 bits.
    pub(crate) fn wide_integer(&self, index: c_int) -> Option<i64> {
        // SAFETY: LuaJIT makes these strings without fail: digits, and a suffix that tells the type.
        let text = unsafe {
            if ffi::luaL_callmeta(self.lua, index, c"__tostring".as_ptr()) == 0 {
                return None;
            }
            let mut length = 0;
            let start = ffi::lua_tolstring(self.lua, -1, &mut length);
            let text = (!start.is_null()).then(|| {
                String::from_utf8_lossy(std::slice::from_raw_parts(start.cast(), length)).into_owned()
            });
            ffi::lua_pop(self.lua, 1);
            text?
        };
        if let Some(digits) = text.strip_suffix("ULL") {
            return digits.parse::<u64>().ok().map(|number| number as i64);
        }
        text.strip_suffix("LL")?.parse().ok()
    }

    /// Argument `index` as bytes, where it is a string or a number (which becomes a string in place).
    #[inline]
    pub(crate) fn bytes(&self, index: c_int) -> Option<&[u8]> {
        let mut length = 0;
        // SAFETY: Lua's string lives while it is on the stack, which is for as long as the call borrowed here.
        unsafe {
            let start = ffi::lua_tolstring(self.lua, index, &mut length);
            (!start.is_null()).then(|| std::slice::from_raw_parts(start.cast(), length))
        }
    }

    /// What stands at `[position]` in the table that is argument `index`, as an integer; `None` where the argument is
    /// no table or there is no number.
    #[inline]
    pub(crate) fn field(&self, index: c_int, position: c_int) -> Option<i64> {
        // SAFETY: the argument is a table; one slot is free, since Lua grants 20 to a call.
        unsafe {
            if ffi::lua_type(self.lua, index) != ffi::LUA_TTABLE {
                return None;
            }
            ffi::lua_rawgeti(self.lua, index, position as _);
            let found =
                (ffi::lua_type(self.lua, -1) == ffi::LUA_TNUMBER).then(|| ffi::lua_tonumber(self.lua, -1));
            ffi::lua_pop(self.lua, 1);
            found.map(|number| number as i64)
        }
    }

    /// Pushes a number.
    #[inline]
    pub(crate) fn push(&self, number: f64) {
        // SAFETY: Lua grants 20 slots to a call; functions here push fewer.
        unsafe { ffi::lua_pushnumber(self.lua, number) }
    }

    /// Pushes a string.
    pub(crate) fn push_bytes(&self, bytes: &[u8]) {
        // SAFETY: as above; Lua copies the bytes.
        unsafe { ffi::lua_pushlstring(self.lua, bytes.as_ptr().cast(), bytes.len()) };
    }

    /// Pushes a boolean.
    pub(crate) fn push_bool(&self, value: bool) {
        // SAFETY: as above.
        unsafe { ffi::lua_pushboolean(self.lua, value.into()) }
    }

    /// Pushes nil.
    pub(crate) fn push_nil(&self) {
        // SAFETY: as above.
        unsafe { ffi::lua_pushnil(self.lua) }
    }

    /// Pushes a new table with room for `length` values.
    pub(crate) fn push_table(&self, length: c_int) {
        // SAFETY: as above.
        unsafe { ffi::lua_createtable(self.lua, length, 0) }
    }

    /// Pops the value pushed last into `[position]` of the table pushed before it.
    pub(crate) fn set_field(&self, position: c_int) {
        // SAFETY: the caller has pushed both.
        unsafe { ffi::lua_rawseti(self.lua, -2, position as _) }
    }

    /// Whether the coroutine can be left here.
    #[inline]
    pub(crate) fn can_leave(&self) -> bool {
        // SAFETY: the state is valid during the call.
        unsafe { lua_isyieldable(self.lua) != 0 }
    }
}

/// What Lua calls.
unsafe extern "C-unwind" fn enter<R: Raw>(lua: *mut ffi::lua_State) -> c_int {
    // SAFETY: Lua calls with a valid state; the error leaves after `text` is gone.
    unsafe {
        match R::call(&Call { lua }) {
            Ok(Pushed::Values(count)) => return count,
            Ok(Pushed::Left) => {
                ffi::lua_pushlightuserdata(lua, mark());
                return ffi::lua_yield(lua, 1);
            }
            Err(text) => {
                ffi::luaL_where(lua, 1);
                ffi::lua_pushlstring(lua, text.as_ptr().cast(), text.len());
                ffi::lua_concat(lua, 2);
            }
        }
        ffi::lua_error(lua)
    }
}

/// The raw functions of a state, which its users share, and whose turn it is.
#[derive(Default)]
pub(crate) struct Functions {
    current: Rc<Current>,
    made: HashMap<TypeId, Function>,
}

impl Functions {
    /// For a state whose users take turns by `current`.
    pub(crate) fn new(current: &Rc<Current>) -> Self {
        Self { current: Rc::clone(current), made: HashMap::new() }
    }
}

/// The raw function `R` of a state that was made with [`Functions`].
pub(crate) fn function<R: Raw + 'static>(lua: &Lua) -> mlua::Result<Function> {
    let (known, current) = {
        let functions = lua.app_data_ref::<Functions>().expect("the state was made with them");
        (functions.made.get(&TypeId::of::<R>()).cloned(), Rc::as_ptr(&functions.current))
    };
    if let Some(known) = known {
        return Ok(known);
    }
    // SAFETY: the closure is pushed under mlua's protection; the cell lives as long as the state, see above.
    let function: Function = unsafe {
        lua.exec_raw((), |state| {
            ffi::lua_pushlightuserdata(state, current.cast_mut().cast::<c_void>());
            ffi::lua_pushcclosure(state, enter::<R>, 1);
        })?
    };
    let mut functions = lua.app_data_mut::<Functions>().expect("the state was made with them");
    functions.made.insert(TypeId::of::<R>(), function.clone());
    Ok(function)
}

/// What [`mark`] is in Lua, for wrappers of `coroutine.resume` to compare with.
pub(crate) fn mark_value() -> mlua::LightUserData {
    mlua::LightUserData(mark())
}

/// A coroutine resumed by hand.
pub(crate) struct Coroutine {
    lua: *mut ffi::lua_State,
}

/// Why a coroutine came back.
pub(crate) enum Back {
    /// A raw function left it.
    Left,
    /// The script's own yield, which nobody waits for.
    Yielded,
    /// It has ended; its results are on its stack.
    Ended,
    /// It has failed; the error is on top of its stack, and it cannot be resumed any more.
    Failed,
}

/// What a resumed call is told.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Told {
    /// Nothing.
    Nothing,
    /// Yes or no.
    Flag(bool),
}

impl Coroutine {
    /// The coroutine of `thread`, which the caller keeps alive.
    pub(crate) fn of(thread: &mlua::Thread) -> Self {
        Self { lua: thread.state() }
    }

    /// Runs the function that the coroutine was made with, which stays at the bottom of its stack for the next time.
    #[inline]
    pub(crate) fn begin(&self, arguments: &[i64]) -> Back {
        // SAFETY: the coroutine is not under way, and has room for a function and a few arguments.
        unsafe {
            ffi::lua_settop(self.lua, 1);
            ffi::lua_pushvalue(self.lua, 1);
            for &argument in arguments {
                ffi::lua_pushnumber(self.lua, argument as f64);
            }
        }
        self.resume(arguments.len() as c_int)
    }

    /// Goes on with `count` arguments on the stack.
    pub(crate) fn resume(&self, count: c_int) -> Back {
        // SAFETY: the coroutine is either fresh with a function and its arguments on the stack, or was left.
        unsafe {
            match ffi::lua_resume_(self.lua, count) {
                ffi::LUA_OK => Back::Ended,
                ffi::LUA_YIELD if ffi::lua_touserdata(self.lua, -1) == mark() => {
                    ffi::lua_settop(self.lua, 0);
                    Back::Left
                }
                ffi::LUA_YIELD => Back::Yielded,
                _ => Back::Failed,
            }
        }
    }

    /// Goes on after it was left, telling the call that left it `told`.
    pub(crate) fn go_on(&self, told: Told) -> Back {
        // SAFETY: the coroutine was left, and its stack is empty but for what is pushed here.
        let count = match told {
            Told::Nothing => 0,
            Told::Flag(flag) => unsafe {
                ffi::lua_pushboolean(self.lua, flag.into());
                1
            },
        };
        self.resume(count)
    }

    /// Has the globals of `other`, a coroutine of the same state.
    pub(crate) fn take_globals_of(&self, other: &Coroutine) {
        // SAFETY: both have room for one more value, and neither is under way.
        unsafe {
            ffi::lua_pushvalue(other.lua, ffi::LUA_GLOBALSINDEX);
            ffi::lua_xmove(other.lua, self.lua, 1);
            ffi::lua_replace(self.lua, ffi::LUA_GLOBALSINDEX);
        }
    }

    /// Takes the error that it has failed with.
    pub(crate) fn error(&self, lua: &Lua) -> Value {
        // SAFETY: both are coroutines of one state, and the error is on top of this one's stack.
        unsafe { lua.exec_raw((), |state| ffi::lua_xmove(self.lua, state, 1)) }.unwrap_or(Value::Nil)
    }

    /// Whether its first result is neither nil nor false.
    pub(crate) fn result_is_true(&self) -> bool {
        // SAFETY: any index is acceptable.
        unsafe { ffi::lua_toboolean(self.lua, 2) != 0 }
    }

    /// Whether its first result is the boolean false.
    pub(crate) fn result_is_false(&self) -> bool {
        // SAFETY: any index is acceptable.
        unsafe { ffi::lua_type(self.lua, 2) == ffi::LUA_TBOOLEAN && ffi::lua_toboolean(self.lua, 2) == 0 }
    }
}
