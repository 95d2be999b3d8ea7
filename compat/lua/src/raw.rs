//! Raw functions: Rust functions that Lua calls without mlua.
//!
//! mlua adds locks, error protection and conversions to every call of a Rust function. These take longer than a function
//! such as `sysbench.rand.uniform` itself. A raw function reads its arguments from Lua's stack and pushes its results.
//!
//! Rules that make the unsafe code sound:
//! - Contexts outlive the Lua state: functions hold the address of a cell that points to the current context, and `Vm` drops
//!   the Lua state before the contexts.
//! - Only [`enter`] raises errors, after it has dropped all values that a function owned, because LuaJIT unwinds the stack.
//! - Bytes borrowed from Lua's stack live no longer than the call.

// Lua's C interface is unsafe as a whole.
#![allow(unsafe_code)]

use std::any::TypeId;
use std::cell::Cell;
use std::collections::HashMap;
use std::ffi::{c_int, c_void};
use std::ptr::NonNull;
use std::rc::Rc;

use mlua::ffi;
use mlua::{Function, Lua, Value};

use crate::context::{Context, Current};
use crate::sql::Answer;

/// The result of a raw function. `Err` holds the message of the Lua error that [`enter`] raises.
pub(crate) type CallResult = Result<CallReturn, String>;

/// How a raw function returns to Lua.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum CallReturn {
    /// The call returns this many values: those pushed last.
    Values(c_int),
    /// The coroutine yields; the call returns the values with which it is resumed.
    Yield,
}

/// The function returns no value.
pub(crate) const NO_RESULT: CallResult = Ok(CallReturn::Values(0));
/// The function returns the value that it pushed last.
pub(crate) const ONE_RESULT: CallResult = Ok(CallReturn::Values(1));

/// A call of a raw function.
pub(crate) struct Call {
    lua: *mut ffi::lua_State,
}

/// LuaJIT's type of `ffi` values, which mlua does not declare.
pub(crate) const LUA_TCDATA: c_int = 10;

unsafe extern "C" {
    /// LuaJIT exports this function, and mlua does not declare it.
    fn lua_isyieldable(lua: *mut ffi::lua_State) -> c_int;
}

/// The address of this variable is the value that a raw function yields when it waits for the result of a request. A
/// script's own `coroutine.yield` cannot yield this value.
static REQUEST_MARKER: u8 = 0;

fn request_marker() -> *mut c_void {
    std::ptr::addr_of!(REQUEST_MARKER).cast_mut().cast()
}

impl Call {
    /// The context of the current user.
    #[inline]
    pub(crate) fn context(&self) -> &Context {
        // SAFETY: `function` stored the address of a cell that the state's `Functions` own. The cell points to the context of
        // the current user before any raw function runs, and contexts outlive the state.
        unsafe {
            let current =
                ffi::lua_touserdata(self.lua, ffi::lua_upvalueindex(1)).cast::<Cell<*const Context>>();
            &*(*current).get()
        }
    }

    /// Pushes the address of the context, for a finalizer that Lua's garbage collector may call while another user runs.
    pub(crate) fn push_context(&self) {
        let address = std::ptr::from_ref(self.context()).cast_mut().cast();
        // SAFETY: one slot is free, since Lua grants 20 to a call.
        unsafe { ffi::lua_pushlightuserdata(self.lua, address) }
    }

    /// The context whose address is argument `index`. [`Call::push_context`] pushed the address.
    pub(crate) fn context_at(&self, index: c_int) -> &Context {
        // SAFETY: interface.lua passes the address unchanged and hides it from scripts; contexts outlive the state.
        unsafe { &*ffi::lua_touserdata(self.lua, index).cast::<Context>() }
    }

    /// The number of arguments.
    pub(crate) fn argument_count(&self) -> c_int {
        // SAFETY: the state is valid during the call.
        unsafe { ffi::lua_gettop(self.lua) }
    }

    /// Argument `index`, counted from 1, as a number. Strings are converted; other types are 0.
    #[inline]
    pub(crate) fn number(&self, index: c_int) -> f64 {
        // SAFETY: any index is acceptable to lua_tonumber.
        unsafe { ffi::lua_tonumber(self.lua, index) }
    }

    /// [`Call::number`] without the fraction.
    #[inline]
    pub(crate) fn integer(&self, index: c_int) -> i64 {
        self.number(index) as i64
    }

    /// Whether argument `index` is a number or a string that contains one.
    #[inline]
    pub(crate) fn is_number(&self, index: c_int) -> bool {
        // SAFETY: any index is acceptable.
        unsafe { ffi::lua_isnumber(self.lua, index) != 0 }
    }

    /// Argument `index`, converted like the `uint32_t` of a C function: the fraction is cut off, and the number wraps.
    ///
    /// # Errors
    /// LuaJIT's message if the argument is not a number.
    #[inline]
    pub(crate) fn unsigned(&self, index: c_int) -> Result<u32, String> {
        match self.kind(index) {
            ffi::LUA_TNUMBER => Ok(self.number(index) as i64 as u32),
            _ => self.convert_to_unsigned(index),
        }
    }

    #[cold]
    fn convert_to_unsigned(&self, index: c_int) -> Result<u32, String> {
        // SAFETY: lua_pcall catches errors, and every pushed value is popped.
        let number = unsafe {
            match ffi::lua_type(self.lua, index) {
                ffi::LUA_TBOOLEAN => Some(f64::from(ffi::lua_toboolean(self.lua, index))),
                LUA_TCDATA => {
                    ffi::lua_getfield(self.lua, ffi::LUA_GLOBALSINDEX, c"tonumber".as_ptr());
                    ffi::lua_pushvalue(self.lua, index);
                    ffi::lua_pcall(self.lua, 1, 1, 0);
                    self.pop_number()
                }
                _ => None,
            }
        };
        number.map(|number| number as i64 as u32).ok_or_else(|| {
            let kind = self.type_name(index);
            format!("bad argument #{index} to '?' (cannot convert '{kind}' to 'unsigned int')")
        })
    }

    /// The name of the type of argument `index`.
    pub(crate) fn type_name(&self, index: c_int) -> &'static str {
        match self.kind(index) {
            ffi::LUA_TBOOLEAN => "boolean",
            ffi::LUA_TLIGHTUSERDATA | ffi::LUA_TUSERDATA => "userdata",
            ffi::LUA_TNUMBER => "number",
            ffi::LUA_TSTRING => "string",
            ffi::LUA_TTABLE => "table",
            ffi::LUA_TFUNCTION => "function",
            ffi::LUA_TTHREAD => "thread",
            LUA_TCDATA => "cdata",
            _ => "nil",
        }
    }

    /// The type of argument `index`, one of `mlua::ffi::LUA_T*` or [`LUA_TCDATA`].
    #[inline]
    pub(crate) fn kind(&self, index: c_int) -> c_int {
        // SAFETY: any index is acceptable.
        unsafe { ffi::lua_type(self.lua, index) }
    }

    /// Whether argument `index` is neither nil nor false.
    pub(crate) fn is_true(&self, index: c_int) -> bool {
        // SAFETY: any index is acceptable.
        unsafe { ffi::lua_toboolean(self.lua, index) != 0 }
    }

    /// Argument `index` if it is a 64-bit integer of `ffi`.
    pub(crate) fn wide_integer(&self, index: c_int) -> Option<i64> {
        // SAFETY: this metamethod cannot fail; it returns digits and a suffix for the type.
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

    /// Argument `index` as bytes if it is a string or a number. A number on the stack becomes a string.
    #[inline]
    pub(crate) fn bytes(&self, index: c_int) -> Option<&[u8]> {
        let mut length = 0;
        // SAFETY: Lua's string lives while it is on the stack, as long as the borrowed call.
        unsafe {
            let start = ffi::lua_tolstring(self.lua, index, &mut length);
            (!start.is_null()).then(|| std::slice::from_raw_parts(start.cast(), length))
        }
    }

    /// Argument `index`, which must be a string; `name` is the parameter's name in LuaJIT's error message.
    pub(crate) fn string(&self, index: c_int, name: &str) -> Result<&[u8], String> {
        match self.kind(index) {
            ffi::LUA_TSTRING => Ok(self.bytes(index).unwrap_or_default()),
            _ => Err(format!("attempt to get length of local '{name}' (a {} value)", self.type_name(index))),
        }
    }

    /// The integer at `[position]` of the table that is argument `index`; `None` if the argument is not a table or the
    /// field is not a number.
    #[inline]
    pub(crate) fn field(&self, index: c_int, position: c_int) -> Option<i64> {
        // SAFETY: the argument is a table; one slot is free, since Lua grants 20 to a call.
        unsafe {
            if ffi::lua_type(self.lua, index) != ffi::LUA_TTABLE {
                return None;
            }
            ffi::lua_rawgeti(self.lua, index, position as _);
            self.pop_number().map(|number| number as i64)
        }
    }

    /// Pops the last value; `None` if it is not a number.
    #[inline]
    fn pop_number(&self) -> Option<f64> {
        // SAFETY: the caller has pushed a value.
        unsafe {
            let is_number = ffi::lua_type(self.lua, -1) == ffi::LUA_TNUMBER;
            let number = is_number.then(|| ffi::lua_tonumber(self.lua, -1));
            ffi::lua_pop(self.lua, 1);
            number
        }
    }

    #[inline]
    pub(crate) fn push(&self, number: f64) {
        // SAFETY: Lua grants 20 slots to a call; functions here push fewer.
        unsafe { ffi::lua_pushnumber(self.lua, number) }
    }

    pub(crate) fn push_bytes(&self, bytes: &[u8]) {
        // SAFETY: as above; Lua copies the bytes.
        unsafe { ffi::lua_pushlstring(self.lua, bytes.as_ptr().cast(), bytes.len()) };
    }

    pub(crate) fn push_bool(&self, value: bool) {
        // SAFETY: as above.
        unsafe { ffi::lua_pushboolean(self.lua, value.into()) }
    }

    pub(crate) fn push_nil(&self) {
        // SAFETY: as above.
        unsafe { ffi::lua_pushnil(self.lua) }
    }

    /// Pushes a new table with room for `length` values.
    pub(crate) fn push_table(&self, length: c_int) {
        // SAFETY: as above.
        unsafe { ffi::lua_createtable(self.lua, length, 0) }
    }

    /// Pops the value pushed last and stores it at `[position]` of the table pushed before the value.
    pub(crate) fn set_field(&self, position: c_int) {
        // SAFETY: the caller has pushed the table and the value.
        unsafe { ffi::lua_rawseti(self.lua, -2, position as _) }
    }

    /// Whether the coroutine can yield here; it cannot inside a callback of a C function such as `table.sort`.
    #[inline]
    pub(crate) fn is_yieldable(&self) -> bool {
        // SAFETY: the state is valid during the call.
        unsafe { lua_isyieldable(self.lua) != 0 }
    }
}

/// The C function that Lua calls for the raw function `F`.
unsafe extern "C-unwind" fn enter<F: Fn(&Call) -> CallResult>(lua: *mut ffi::lua_State) -> c_int {
    // SAFETY: `F` has size 0 and `function` received a value of type `F`, so any aligned address is a valid `&F`. Lua passes a
    // valid state; `lua_error` runs after `text` is dropped.
    unsafe {
        match NonNull::<F>::dangling().as_ref()(&Call { lua }) {
            Ok(CallReturn::Values(count)) => return count,
            Ok(CallReturn::Yield) => {
                ffi::lua_pushlightuserdata(lua, request_marker());
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

/// The raw functions of a Lua state, created once for all users that share the state.
pub(crate) struct Functions {
    current: Rc<Current>,
    cached: HashMap<TypeId, Function>,
}

impl Functions {
    pub(crate) fn new(current: &Rc<Current>) -> Self {
        Self { current: Rc::clone(current), cached: HashMap::new() }
    }
}

/// Creates a Lua function from `body`, or returns the cached one.
pub(crate) fn function<F>(lua: &Lua, _body: F) -> mlua::Result<Function>
where
    F: Fn(&Call) -> CallResult + Copy + 'static,
{
    const { assert!(size_of::<F>() == 0, "a raw function captures nothing") };
    let (cached, current) = {
        let functions = lua.app_data_ref::<Functions>().expect("`Vm` has set them");
        (functions.cached.get(&TypeId::of::<F>()).cloned(), Rc::as_ptr(&functions.current))
    };
    if let Some(cached) = cached {
        return Ok(cached);
    }
    // SAFETY: mlua protects the call that pushes the closure; the cell lives as long as the state, see `Functions`.
    let function: Function = unsafe {
        lua.exec_raw((), |state| {
            ffi::lua_pushlightuserdata(state, current.cast_mut().cast::<c_void>());
            ffi::lua_pushcclosure(state, enter::<F>, 1);
        })?
    };
    let mut functions = lua.app_data_mut::<Functions>().expect("`Vm` has set them");
    functions.cached.insert(TypeId::of::<F>(), function.clone());
    Ok(function)
}

/// [`request_marker`] as a Lua value, with which base.rs's replacement of `coroutine.resume` compares yielded values.
pub(crate) fn request_marker_value() -> mlua::LightUserData {
    mlua::LightUserData(request_marker())
}

/// A coroutine of the script, resumed without mlua.
pub(crate) struct Coroutine {
    lua: *mut ffi::lua_State,
}

/// How a resumed coroutine stopped.
pub(crate) enum Stop {
    /// A raw function yielded for a request.
    Requested,
    /// The script itself yielded, and nothing can resume it.
    Yielded,
    /// The function returned; its results are on the coroutine's stack.
    Returned,
    /// The function failed; the error is on top of the stack, and the coroutine cannot be resumed.
    Failed,
}

impl Coroutine {
    /// The coroutine of `thread`, which the caller keeps alive.
    pub(crate) fn new(thread: &mlua::Thread) -> Self {
        Self { lua: thread.state() }
    }

    /// Runs the coroutine's function, which stays at the bottom of the stack for the next call.
    #[inline]
    pub(crate) fn start(&self, arguments: &[i64]) -> Stop {
        // SAFETY: the coroutine is not running, and has room for a function and a few arguments.
        unsafe {
            ffi::lua_settop(self.lua, 1);
            ffi::lua_pushvalue(self.lua, 1);
            for &argument in arguments {
                ffi::lua_pushnumber(self.lua, argument as f64);
            }
        }
        self.resume(arguments.len() as c_int)
    }

    /// Resumes the coroutine with `count` arguments on the stack.
    fn resume(&self, count: c_int) -> Stop {
        // SAFETY: the coroutine is either fresh with a function and its arguments on the stack, or has yielded.
        unsafe {
            match ffi::lua_resume_(self.lua, count) {
                ffi::LUA_OK => Stop::Returned,
                ffi::LUA_YIELD if ffi::lua_touserdata(self.lua, -1) == request_marker() => {
                    ffi::lua_settop(self.lua, 0);
                    Stop::Requested
                }
                ffi::LUA_YIELD => Stop::Yielded,
                _ => Stop::Failed,
            }
        }
    }

    /// Resumes the coroutine after a request: the call that yielded returns `answer`.
    pub(crate) fn resume_with(&self, answer: Answer) -> Stop {
        let count = match answer {
            Answer::Nothing => 0,
            Answer::Flag(flag) => {
                // SAFETY: the coroutine has yielded, and its stack is empty except for the value pushed here.
                unsafe { ffi::lua_pushboolean(self.lua, flag.into()) };
                1
            }
        };
        self.resume(count)
    }

    /// Makes this coroutine use the table of globals of `other`, a coroutine of the same state.
    pub(crate) fn use_globals_of(&self, other: &Coroutine) {
        // SAFETY: both have room for one more value, and neither is running.
        unsafe {
            ffi::lua_pushvalue(other.lua, ffi::LUA_GLOBALSINDEX);
            ffi::lua_xmove(other.lua, self.lua, 1);
            ffi::lua_replace(self.lua, ffi::LUA_GLOBALSINDEX);
        }
    }

    /// Takes the error of a failed coroutine.
    pub(crate) fn take_error(&self, lua: &Lua) -> Value {
        // SAFETY: both are coroutines of one state, and the error is on top of this one's stack.
        unsafe { lua.exec_raw((), |state| ffi::lua_xmove(self.lua, state, 1)) }.unwrap_or(Value::Nil)
    }

    /// The first value that the coroutine returned.
    pub(crate) fn return_value(&self) -> ReturnValue {
        // SAFETY: any index is acceptable.
        unsafe {
            if ffi::lua_toboolean(self.lua, 2) != 0 {
                ReturnValue::True
            } else if ffi::lua_type(self.lua, 2) == ffi::LUA_TBOOLEAN {
                ReturnValue::False
            } else {
                ReturnValue::Nothing
            }
        }
    }
}

/// The first value that a function of a script returned.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReturnValue {
    /// Nothing, or nil.
    Nothing,
    /// The boolean false.
    False,
    /// Anything else.
    True,
}
