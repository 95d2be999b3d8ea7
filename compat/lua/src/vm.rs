//! A LuaJIT state: one user's own, or shared by users that each have globals of their own.
//!
//! Thousands of states are thousands of copies of the same code, cold in every cache when their user's turn comes. Users
//! that share a state share its bytecode, strings and compiled traces. Everything else a user has to itself: globals, the
//! libraries' tables, loaded modules, random numbers, the `sysbench` table, and every function and local of the script,
//! since its chunk is run for each of them ([`chunks`](crate::chunks)).
//!
//! What users share beside code: the table `string` (values find their methods there), types declared to `ffi`, and what
//! C modules keep. A script that gives types methods of its own (`ffi.metatype`) has a state for each user.

use std::cell::RefCell;
use std::ffi::c_int;
use std::rc::Rc;

use mlua::{Function, Lua, LuaOptions, StdLib, Table, ffi};

use crate::chunks::{self, Chunks};
use crate::context::Context;
use crate::current::Current;
use crate::error::{ScriptError, told};
use crate::program::Program;
use crate::raw::Functions;

/// Users of one state at most: each takes some of the slots that mlua has for references.
pub const USERS_MAX: usize = 1024;

/// A LuaJIT state.
pub struct Vm {
    // Before the contexts, whose addresses its functions hold.
    lua: Lua,
    /// Makes the globals of one more user; `None` where there is one user alone.
    globals: Option<Function>,
    contexts: RefCell<Vec<Rc<Context>>>,
    /// Whose turn it is.
    pub(crate) current: Rc<Current>,
}

impl Vm {
    /// For one user alone.
    ///
    /// # Errors
    /// Lua has no memory.
    pub fn own(jit: bool) -> Result<Rc<Self>, ScriptError> {
        let (lua, current) = open(jit).map_err(told)?;
        Ok(Rc::new(Self { lua, globals: None, contexts: RefCell::default(), current }))
    }

    /// For several users.
    ///
    /// # Errors
    /// Lua has no memory.
    pub fn shared(jit: bool) -> Result<Rc<Self>, ScriptError> {
        Self::for_several(jit).map_err(told)
    }

    fn for_several(jit: bool) -> mlua::Result<Rc<Self>> {
        let (lua, current) = open(jit)?;
        let random = lua.create_function(|lua, ()| fresh_random(lua))?;
        let load = lua.create_function(chunks::load_text)?;
        let chunk = lua.load(include_str!("vm.lua")).set_name("=globals");
        let (globals, file_loader) = chunk.call((lua.globals(), random, load))?;
        lua.set_app_data(Chunks::new(file_loader));
        Ok(Rc::new(Self { lua, globals: Some(globals), contexts: RefCell::default(), current }))
    }

    /// Whether several users share it.
    pub fn is_shared(&self) -> bool {
        self.globals.is_some()
    }

    /// Globals for one more user, whose `context` is kept for as long as there is the state.
    pub(crate) fn admit(&self, context: &Rc<Context>) -> mlua::Result<Table> {
        self.contexts.borrow_mut().push(Rc::clone(context));
        self.current.set(Rc::as_ptr(context));
        let Program { path, cpath, .. } = &*context.program;
        match &self.globals {
            Some(make) => make.call((path.as_str(), cpath.as_str())),
            None => {
                let globals = self.lua.globals();
                let package: Table = globals.get("package")?;
                package.set("path", path.as_str())?;
                package.set("cpath", cpath.as_str())?;
                Ok(globals)
            }
        }
    }

    pub(crate) fn lua(&self) -> &Lua {
        &self.lua
    }

    /// Makes it the turn of a user that was admitted, outside of any coroutine.
    pub(crate) fn turn_to(&self, context: &Rc<Context>, globals: &Table) -> &Lua {
        self.current.set(Rc::as_ptr(context));
        if self.is_shared() {
            self.lua.set_globals(globals.clone()).expect("a table is all that it takes");
        }
        &self.lua
    }

    /// A user was made, or has run its `thread_init`: where it is alone, what that leaves behind is given back. Many would
    /// have to look through one another's memory again and again, and are looked through once, by [`Vm::collect`].
    ///
    /// # Errors
    /// A finalizer of the script has failed.
    pub fn has_grown(&self) -> Result<(), ScriptError> {
        if self.is_shared() { Ok(()) } else { self.collect() }
    }

    /// Gives back the memory that making its users has left behind, before they are at work.
    ///
    /// # Errors
    /// A finalizer of the script has failed.
    pub fn collect(&self) -> Result<(), ScriptError> {
        self.lua.gc_collect().map_err(told)
    }
}

#[allow(unsafe_code)] // Scripts get `ffi` and C modules, as sysbench gives them.
fn open(jit: bool) -> mlua::Result<(Lua, Rc<Current>)> {
    // SAFETY: what a script does through `ffi` is the script's affair.
    let lua = unsafe { Lua::unsafe_new_with(StdLib::ALL, LuaOptions::new()) };
    let globals = lua.globals();
    if !jit {
        globals.get::<Table>("jit")?.get::<Function>("off")?.call::<()>(())?;
    }
    let ffi: Table = globals.get::<Function>("require")?.call("ffi")?;
    globals.set("ffi", ffi)?;
    let current = Rc::<Current>::default();
    lua.set_app_data(Functions::new(&current));
    Ok((lua, current))
}

/// `math.random` and `math.randomseed` with numbers of their own, as in a state that was just made.
#[allow(unsafe_code)]
fn fresh_random(lua: &Lua) -> mlua::Result<(Function, Function)> {
    unsafe extern "C-unwind" fn open(state: *mut ffi::lua_State) -> c_int {
        // SAFETY: called by Lua; the library leaves its table.
        unsafe { ffi::luaopen_math(state) }
    }
    // SAFETY: a plain C function of Lua's own.
    let open = unsafe { lua.create_c_function(open)? };
    let math: Table = open.call(())?;
    Ok((math.get("random")?, math.get("randomseed")?))
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use crate::testing::{Heard, users};

    /// What two users of one state print.
    fn printed(text: &str) -> String {
        let heard = Arc::new(Heard::default());
        users(text, &heard, 2);
        heard.printed.lock().unwrap().clone()
    }

    #[test]
    fn users_have_globals_modules_and_libraries_of_their_own() {
        let text = "
            seen = (seen or 0) + 1
            local count = 0
            function bump() count = count + 1 return count end
            table.mine = (table.mine or 0) + 1
            package.path = package.path .. ';x'
            package.preload.counter = function() return { n = 0 } end
            local counter = require('counter') counter.n = counter.n + 1
            print(sysbench.tid, seen, bump(), table.mine, package.path, counter.n, _G.seen, rawget(_G, 'seen'))
            print(loadstring('return seen')(), getfenv(0) == _G, require('table') == table, ffi == require('ffi'))";
        let expected = "0\t1\t1\t1\t./?.lua;x\t1\t1\t1\n1\ttrue\ttrue\ttrue\n\
                        1\t1\t1\t1\t./?.lua;x\t1\t1\t1\n1\ttrue\ttrue\ttrue\n";
        assert_eq!(printed(text), expected);
    }

    #[test]
    fn users_draw_the_same_numbers_as_in_states_of_their_own() {
        let text = "math.randomseed(5) print(math.random(1000), math.random(1000))";
        let seen = printed(text);
        let lines: Vec<_> = seen.lines().collect();
        assert_eq!(lines[0], lines[1]);
    }

    #[test]
    fn types_are_declared_once_and_strings_keep_their_methods() {
        let text = "ffi.cdef('struct point { int x; };') print(ffi.new('struct point', 3).x)
            function string:twice() return self .. self end print(('ab'):twice())
            print(coroutine.wrap(function() return sysbench.tid, seen end)())";
        assert_eq!(printed(text), "3\nabab\n0\tnil\n3\nabab\n1\tnil\n");
    }

    #[test]
    fn files_are_each_users_own() {
        let text = "local name = os.tmpname() io.output(name) io.write('user ', sysbench.tid) io.close()
            io.input(name) print(io.read('*a')) io.close(io.input()) os.remove(name)
            print(collectgarbage(), collectgarbage('count') > 0, io.stdout ~= nil)";
        assert_eq!(printed(text), "user 0\n0\ttrue\ttrue\nuser 1\n0\ttrue\ttrue\n");
    }

    #[test]
    fn files_of_modules_are_read_once_and_run_for_each() {
        let folder = env!("CARGO_MANIFEST_DIR").to_owned() + "/tests/modules";
        let script_path = Some(format!("{folder}/main.lua"));
        let heard = Arc::new(Heard { script_path, ..Heard::default() });
        let text = "local beside = require('beside') beside.seen = (beside.seen or 0) + 1 print(beside.name, beside.seen)
            print((select(2, pcall(require, 'nowhere')):match(\"^[^\\n]*\")))
            print((select(2, pcall(require, 'broken')):match('^error loading module .broken. from file')))
            print((select(2, pcall(require))), type(require('table.new')), table.new ~= nil, require('table.nkeys')({1, 2}))";
        users(text, &heard, 2);
        let seen = heard.printed.lock().unwrap().clone();
        let half = seen.len() / 2;
        assert_eq!(seen[..half], seen[half..], "{seen}");
        let lines: Vec<_> = seen.lines().collect();
        assert!(lines[0].ends_with("\t1"), "{seen}");
        assert!(lines[1].ends_with("module 'nowhere' not found:"), "{seen}");
        assert_eq!(lines[2], "error loading module 'broken' from file");
        assert_eq!(
            lines[3],
            "bad argument #1 to 'require' (string expected, got no value)\tfunction\ttrue\t2"
        );
    }

    #[test]
    fn a_module_of_the_old_kind_is_each_users_own() {
        let text = "package.preload.old = function() module('old', package.seeall) n = (n or 0) + 1 end
            require('old') print(old.n, old._NAME, package.loaded.old == old)";
        assert_eq!(printed(text), "1\told\ttrue\n1\told\ttrue\n");
    }
}
