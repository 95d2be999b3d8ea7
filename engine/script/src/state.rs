//! One LuaJIT state: made, given the interface, and the script's chunk in it.

use std::rc::Rc;
use std::sync::Arc;

use mlua::{Function, Lua, LuaOptions, StdLib, Table};

use crate::api;
use crate::api::cmdline::Refused;
use crate::context::{Context, World};
use crate::front::{Front, Stat};
use crate::life;
use crate::program::{Program, Source};
use crate::task::{ScriptError, Task, message};

/// A LuaJIT state with a script in it. Lives on one thread.
pub struct State {
    // Before the context, whose address its functions hold.
    lua: Lua,
    context: Rc<Context>,
}

impl State {
    /// A state for user `tid` that has everything but the script.
    ///
    /// # Errors
    /// Lua has no memory, or the interface is broken.
    #[allow(unsafe_code)] // Scripts get `ffi` and C modules, as sysbench gives them.
    pub fn new(
        tid: i64,
        program: &Arc<Program>,
        front: &Arc<dyn Front>,
        world: Rc<dyn World>,
        jit: bool,
    ) -> Result<Self, ScriptError> {
        // SAFETY: what a script does through `ffi` is the script's affair.
        let lua = unsafe { Lua::unsafe_new_with(StdLib::ALL, LuaOptions::new()) };
        let context = Rc::new(Context::new(tid, Arc::clone(program), Arc::clone(front), world));
        let state = Self { lua, context };
        state.furnish(jit).map_err(|error| ScriptError::Message(message(&error)))?;
        Ok(state)
    }

    fn furnish(&self, jit: bool) -> mlua::Result<()> {
        let globals = self.lua.globals();
        if !jit {
            globals.get::<Table>("jit")?.get::<Function>("off")?.call::<()>(())?;
        }
        let package = globals.get::<Table>("package")?;
        package.set("path", self.context.program.path.as_str())?;
        package.set("cpath", self.context.program.cpath.as_str())?;
        let ffi: Table = globals.get::<Function>("require")?.call("ffi")?;
        globals.set("ffi", ffi)?;
        api::install(&self.lua, &self.context)
    }

    /// The script's chunk, to be called once.
    ///
    /// # Errors
    /// It is not Lua; in LuaJIT's own words.
    pub fn chunk(&self) -> Result<Task, ScriptError> {
        let loaded = match &self.context.program.source {
            Source::Text { text, chunk } => {
                self.lua.load(without_first_line(text)).set_name(chunk.as_str()).into_function()
            }
            Source::File(path) => self.load_file(path),
            Source::Module(name) => self.requiring(name),
        };
        loaded.and_then(|chunk| self.task(chunk)).map_err(|error| ScriptError::Message(message(&error)))
    }

    /// The global function `name`; `None` where there is none.
    ///
    /// # Errors
    /// Lua has no memory.
    pub fn global(&self, name: &str) -> Result<Option<Task>, ScriptError> {
        match self.lua.globals().raw_get(name) {
            Ok(mlua::Value::Function(function)) => {
                self.task(function).map(Some).map_err(|error| ScriptError::Message(message(&error)))
            }
            _ => Ok(None),
        }
    }

    /// The function that plays one event, from anew for as long as it asks for that.
    ///
    /// # Errors
    /// Lua has no memory.
    pub fn event(&self) -> Result<Task, ScriptError> {
        let play = life::event(&self.lua, &self.context);
        play.and_then(|play| self.task(play)).map_err(|error| ScriptError::Message(message(&error)))
    }

    /// The script's own `thread_run`; `None` where events are to be played one by one.
    ///
    /// # Errors
    /// Lua has no memory.
    pub fn thread_run(&self) -> Result<Option<Task>, ScriptError> {
        let own = api::life::thread_run(&self.lua);
        let task = own.and_then(|own| own.map(|own| self.task(own)).transpose());
        task.map_err(|error| ScriptError::Message(message(&error)))
    }

    /// The command `name` of `sysbench.cmdline.commands`, which returns true or false, and whether it is a parallel one.
    ///
    /// # Errors
    /// The script's table of commands is wrong.
    pub fn command(&self, name: &str) -> Result<Option<(Task, bool)>, ScriptError> {
        let found = api::cmdline::command(&self.lua, name);
        let task = found.and_then(|found| {
            found.map(|(function, parallel)| Ok((self.task(function)?, parallel))).transpose()
        });
        task.map_err(|error| ScriptError::Message(message(&error)))
    }

    fn task(&self, function: Function) -> mlua::Result<Task> {
        Task::new(&self.lua, &self.context, function)
    }

    fn load_file(&self, path: &str) -> mlua::Result<Function> {
        let loadfile: Function = self.lua.globals().get("loadfile")?;
        match loadfile.call::<(Option<Function>, Option<String>)>(path)? {
            (Some(chunk), _) => Ok(chunk),
            (None, words) => Err(mlua::Error::RuntimeError(words.unwrap_or_default())),
        }
    }

    fn requiring(&self, name: &str) -> mlua::Result<Function> {
        self.lua.load("local name = ... return function() require(name) end").call(name)
    }

    /// Gives back the memory that making the state has left behind, before thousands of them are at work.
    ///
    /// # Errors
    /// A finalizer of the script has failed.
    pub fn collect(&self) -> Result<(), ScriptError> {
        self.lua.gc_collect().map_err(told)
    }

    /// What the functions of this state share.
    pub fn context(&self) -> &Rc<Context> {
        &self.context
    }

    /// The state itself, for the files of `api`.
    pub fn lua(&self) -> &Lua {
        &self.lua
    }

    /// Reads the options that the script declares and those that were given. For the main state, once.
    ///
    /// # Errors
    /// What was given does not fit, or the script's own declarations are wrong.
    pub fn read_options(&self) -> Result<(), Refused> {
        api::cmdline::read(&self.lua, &self.context)
    }

    /// Fills `sysbench.opt` with every option that was read.
    ///
    /// # Errors
    /// Lua has no memory.
    pub fn fill_options(&self) -> Result<(), ScriptError> {
        let options = self.context.front.options();
        api::opt::fill(&self.lua, self.context.program.compat, &options).map_err(told)
    }

    /// Whether `sysbench.hooks` has a function of that name.
    pub fn has_hook(&self, name: &str) -> bool {
        self.hook(name).is_ok_and(|hook| hook.is_some())
    }

    fn hook(&self, name: &str) -> mlua::Result<Option<Function>> {
        let hooks = self.lua.globals().get::<Table>("sysbench")?.get::<Table>("hooks")?;
        Ok(match hooks.get(name)? {
            mlua::Value::Function(function) => Some(function),
            _ => None,
        })
    }

    /// The report hook `name` with what it is told.
    ///
    /// # Errors
    /// Lua has no memory.
    pub fn report(&self, name: &str, stat: &Stat) -> Result<Option<Task>, ScriptError> {
        let made = || {
            let Some(hook) = self.hook(name)? else { return Ok(None) };
            let told = api::reports::stat(&self.lua, stat)?;
            let bound = self.lua.load("local hook, stat = ... return function() return hook(stat) end");
            self.task(bound.call((hook, told))?).map(Some)
        };
        made().map_err(told)
    }

    /// Whether there is a global function of that name.
    pub fn has_function(&self, name: &str) -> bool {
        matches!(self.lua.globals().raw_get(name), Ok(mlua::Value::Function(_)))
    }
}

/// An error of ours, as the script's.
fn told(error: mlua::Error) -> ScriptError {
    ScriptError::Message(message(&error))
}

/// The chunk without a first line that begins with `#`; the line's end stays, so that lines keep their numbers.
fn without_first_line(text: &[u8]) -> &[u8] {
    if text.first() != Some(&b'#') {
        return text;
    }
    let end = text.iter().position(|&byte| byte == b'\n').unwrap_or(text.len());
    &text[end..]
}
