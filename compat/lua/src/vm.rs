//! A LuaJIT state for one user, or for many users with separate globals.
//!
//! With one state per user, the same code would exist thousands of times, and the CPU caches would not hold a user's
//! copy when that user runs. Users that share a state share bytecode, strings and compiled traces. Each user has
//! separate globals, library tables, loaded modules, random numbers, a `sysbench` table, and all functions and locals
//! of the script, because the chunk runs once per user ([`compile`](crate::compile)).
//!
//! Users also share the table `string` (where strings find their methods), types declared to `ffi`, and data of C
//! modules. A script that calls `ffi.metatype` therefore gets one state per user.

use std::cell::RefCell;
use std::ffi::c_int;
use std::rc::Rc;

use mlua::{Function, Lua, LuaOptions, StdLib, Table, ffi};

use crate::compile::{self, CompiledChunks};
use crate::config::ScriptConfig;
use crate::context::{Context, Current};
use crate::error::ScriptError;
use crate::raw::Functions;

/// Maximum number of users of one state. mlua has a limited number of slots for references, and each user takes some.
const USERS_MAX: usize = 1024;
/// Users of a thread share states if the thread has at least this number of users. The code of fewer users fits the CPU
/// caches anyway.
const SHARED_STATE_USERS_MIN: usize = 17;

/// A LuaJIT state.
pub struct Vm {
    // Dropped before the contexts, because Lua functions hold the addresses of contexts.
    lua: Lua,
    /// Creates the globals of one more user; `None` in a state of one user.
    globals: Option<Function>,
    contexts: RefCell<Vec<Rc<Context>>>,
    pub(crate) current: Rc<Current>,
}

impl Vm {
    /// Creates the states of a thread, and returns the state of each user. Users share states if `share` is set and there
    /// are many users.
    pub fn for_users(users: usize, share: bool, jit: bool) -> Result<Vec<Rc<Self>>, ScriptError> {
        if !share || users < SHARED_STATE_USERS_MIN {
            return (0..users).map(|_| Self::single(jit)).collect();
        }
        let shared = (0..users.div_ceil(USERS_MAX)).map(|_| Self::shared(jit));
        let shared = shared.collect::<Result<Vec<_>, _>>()?;
        Ok((0..users).map(|position| Rc::clone(&shared[position / USERS_MAX])).collect())
    }

    /// A state for one user.
    pub fn single(jit: bool) -> Result<Rc<Self>, ScriptError> {
        let (lua, current) = new_lua(jit)?;
        Ok(Rc::new(Self { lua, globals: None, contexts: RefCell::default(), current }))
    }

    /// A state for several users.
    pub fn shared(jit: bool) -> Result<Rc<Self>, ScriptError> {
        let (lua, current) = new_lua(jit)?;
        let random = lua.create_function(|lua, ()| new_random_functions(lua))?;
        let load = lua.create_function(compile::load_text)?;
        let chunk = lua.load(include_str!("vm.lua")).set_name("=globals");
        let (globals, file_loader) = chunk.call((lua.globals(), random, load))?;
        lua.set_app_data(CompiledChunks::new(file_loader));
        Ok(Rc::new(Self { lua, globals: Some(globals), contexts: RefCell::default(), current }))
    }

    fn is_shared(&self) -> bool {
        self.globals.is_some()
    }

    /// Returns the globals of one more user, whose `context` lives as long as the state.
    pub(crate) fn add_user(&self, context: &Rc<Context>) -> mlua::Result<Table> {
        self.contexts.borrow_mut().push(Rc::clone(context));
        self.current.set(Rc::as_ptr(context));
        let ScriptConfig { path, cpath, .. } = &*context.config;
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

    /// Makes a user of [`Vm::add_user`] current, with its globals, for calls outside coroutines.
    pub(crate) fn activate(&self, context: &Rc<Context>, globals: &Table) -> &Lua {
        self.current.set(Rc::as_ptr(context));
        if self.is_shared() {
            self.lua.set_globals(globals.clone()).expect("only a value other than a table is refused");
        }
        &self.lua
    }

    /// Collects the garbage in the state of a single user, to free memory for the next state. Called after the user's
    /// creation and after `thread_init`. In a shared state each collection would scan the memory of all users, so
    /// [`Vm::collect_shared`] runs once.
    pub fn collect_single(&self) -> Result<(), ScriptError> {
        if self.is_shared() { Ok(()) } else { Ok(self.lua.gc_collect()?) }
    }

    /// Collects the garbage from creating the users of `vms`, before they run events.
    pub fn collect_shared(vms: &[Rc<Self>]) -> Result<(), ScriptError> {
        let shared = vms.iter().step_by(USERS_MAX).filter(|vm| vm.is_shared());
        shared.into_iter().try_for_each(|vm| Ok(vm.lua.gc_collect()?))
    }
}

#[allow(unsafe_code)] // Scripts have `ffi` and C modules, as in sysbench.
fn new_lua(jit: bool) -> mlua::Result<(Lua, Rc<Current>)> {
    // SAFETY: the user trusts the script, which `ffi` lets do anything.
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

/// `math.random` and `math.randomseed` with a new generator, as in a new state.
#[allow(unsafe_code)]
fn new_random_functions(lua: &Lua) -> mlua::Result<(Function, Function)> {
    unsafe extern "C-unwind" fn open(state: *mut ffi::lua_State) -> c_int {
        // SAFETY: Lua calls this function; the library pushes its table.
        unsafe { ffi::luaopen_math(state) }
    }
    // SAFETY: a C function of Lua's library.
    let open = unsafe { lua.create_c_function(open)? };
    let math: Table = open.call(())?;
    Ok((math.get("random")?, math.get("randomseed")?))
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use crate::testing::{RecordingHost, users};

    /// The output of two users of one state.
    fn printed(text: &str) -> String {
        let host = Arc::new(RecordingHost::default());
        users(text, &host, 2);
        host.printed.lock().unwrap().clone()
    }

    #[test]
    fn users_have_separate_globals_modules_and_libraries() {
        let text = "
            runs = (runs or 0) + 1
            local count = 0
            function bump() count = count + 1 return count end
            table.mine = (table.mine or 0) + 1
            package.path = package.path .. ';x'
            package.preload.counter = function() return { n = 0 } end
            local counter = require('counter') counter.n = counter.n + 1
            print(sysbench.tid, runs, bump(), table.mine, package.path, counter.n, _G.runs, rawget(_G, 'runs'))
            print(loadstring('return runs')(), getfenv(0) == _G, require('table') == table, ffi == require('ffi'))";
        let expected = "0\t1\t1\t1\t./?.lua;x\t1\t1\t1\n1\ttrue\ttrue\ttrue\n\
                        1\t1\t1\t1\t./?.lua;x\t1\t1\t1\n1\ttrue\ttrue\ttrue\n";
        assert_eq!(printed(text), expected);
    }

    #[test]
    fn users_of_a_shared_state_have_separate_random_numbers() {
        let text = "math.randomseed(5) print(math.random(1000), math.random(1000))";
        let output = printed(text);
        let lines: Vec<_> = output.lines().collect();
        assert_eq!(lines[0], lines[1]);
    }

    #[test]
    fn types_are_declared_once_and_strings_keep_their_methods() {
        let text = "ffi.cdef('struct point { int x; };') print(ffi.new('struct point', 3).x)
            function string:twice() return self .. self end print(('ab'):twice())
            print(coroutine.wrap(function() return sysbench.tid, runs end)())";
        assert_eq!(printed(text), "3\nabab\n0\tnil\n3\nabab\n1\tnil\n");
    }

    #[test]
    fn default_files_are_per_user() {
        let text = "local name = os.tmpname() io.output(name) io.write('user ', sysbench.tid) io.close()
            io.input(name) print(io.read('*a')) io.close(io.input()) os.remove(name)
            print(collectgarbage(), collectgarbage('count') > 0, io.stdout ~= nil)";
        assert_eq!(printed(text), "user 0\n0\ttrue\ttrue\nuser 1\n0\ttrue\ttrue\n");
    }

    #[test]
    fn module_files_are_read_once_and_run_per_user() {
        let folder = env!("CARGO_MANIFEST_DIR").to_owned() + "/tests/modules";
        let script_path = Some(format!("{folder}/main.lua"));
        let host = Arc::new(RecordingHost { script_path, ..RecordingHost::default() });
        let text = "local beside = require('beside') beside.runs = (beside.runs or 0) + 1 print(beside.name, beside.runs)
            print((select(2, pcall(require, 'nowhere')):match(\"^[^\\n]*\")))
            print((select(2, pcall(require, 'broken')):match('^error loading module .broken. from file')))
            print((select(2, pcall(require))), type(require('table.new')), table.new ~= nil, require('table.nkeys')({1, 2}))";
        users(text, &host, 2);
        let output = host.printed.lock().unwrap().clone();
        let half = output.len() / 2;
        assert_eq!(output[..half], output[half..], "{output}");
        let lines: Vec<_> = output.lines().collect();
        assert!(lines[0].ends_with("\t1"), "{output}");
        assert!(lines[1].ends_with("module 'nowhere' not found:"), "{output}");
        assert_eq!(lines[2], "error loading module 'broken' from file");
        assert_eq!(
            lines[3],
            "bad argument #1 to 'require' (string expected, got no value)\tfunction\ttrue\t2"
        );
    }

    #[test]
    fn modules_of_module_function_are_per_user() {
        let text = "package.preload.old = function() module('old', package.seeall) n = (n or 0) + 1 end
            require('old') print(old.n, old._NAME, package.loaded.old == old)";
        assert_eq!(printed(text), "1\told\ttrue\n1\told\ttrue\n");
    }
}
