//! One user's script in a LuaJIT state: globals with the interface in them, and the script's chunk run there.

use std::rc::Rc;
use std::sync::Arc;

use mlua::{Function, Lua, Table};

use crate::api;
use crate::api::cmdline::Refused;
use crate::chunks;
use crate::context::{Context, World};
use crate::error::{ScriptError, message, told};
use crate::front::{Front, Stat};
use crate::life;
use crate::program::{Program, Source};
use crate::task::Task;
use crate::vm::Vm;

/// A script in globals of its own. Lives on one thread.
pub struct State {
    vm: Rc<Vm>,
    globals: Table,
    context: Rc<Context>,
}

impl State {
    /// For user `tid`, in `vm`: everything but the script.
    ///
    /// # Errors
    /// Lua has no memory, or the interface is broken.
    pub fn new(
        tid: i64,
        program: &Arc<Program>,
        front: &Arc<dyn Front>,
        world: Rc<dyn World>,
        vm: &Rc<Vm>,
    ) -> Result<Self, ScriptError> {
        let context = Rc::new(Context::new(tid, Arc::clone(program), Arc::clone(front), world));
        let globals = vm.admit(&context).map_err(told)?;
        let state = Self { vm: Rc::clone(vm), globals, context };
        api::install(state.lua(), &state.context).map_err(told)?;
        Ok(state)
    }

    /// The LuaJIT state, in which this user's globals are current until another user's are.
    pub fn lua(&self) -> &Lua {
        self.vm.turn_to(&self.context, &self.globals)
    }

    /// The script's chunk, to be called once.
    ///
    /// # Errors
    /// It is not Lua; in LuaJIT's own words.
    pub fn chunk(&self) -> Result<Task, ScriptError> {
        let loaded = match &self.context.program.source {
            Source::Text { text, chunk } => chunks::load(self.lua(), chunk, chunks::without_first_line(text)),
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
        match self.globals.raw_get(name) {
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
        let play = life::event(self.lua());
        play.and_then(|play| self.task(play)).map_err(|error| ScriptError::Message(message(&error)))
    }

    /// The script's own `thread_run`; `None` where events are to be played one by one.
    ///
    /// # Errors
    /// Lua has no memory.
    pub fn thread_run(&self) -> Result<Option<Task>, ScriptError> {
        let own = api::life::thread_run(self.lua(), &self.context);
        let task = own.and_then(|own| own.map(|own| self.task(own)).transpose());
        task.map_err(|error| ScriptError::Message(message(&error)))
    }

    /// The command `name` of `sysbench.cmdline.commands`, which returns true or false, and whether it is a parallel one.
    ///
    /// # Errors
    /// The script's table of commands is wrong.
    pub fn command(&self, name: &str) -> Result<Option<(Task, bool)>, ScriptError> {
        let found = api::cmdline::command(self.lua(), name);
        let task = found.and_then(|found| {
            found.map(|(function, parallel)| Ok((self.task(function)?, parallel))).transpose()
        });
        task.map_err(|error| ScriptError::Message(message(&error)))
    }

    fn task(&self, function: Function) -> mlua::Result<Task> {
        self.lua();
        Task::new(&self.vm, &self.context, function)
    }

    fn load_file(&self, path: &str) -> mlua::Result<Function> {
        let (chunk, words): (Option<Function>, Option<String>) =
            chunks::file_loader(self.lua())?.call(path)?;
        chunk.ok_or_else(|| mlua::Error::RuntimeError(words.unwrap_or_default()))
    }

    fn requiring(&self, name: &str) -> mlua::Result<Function> {
        self.lua().load("local name = ... return function() require(name) end").call(name)
    }

    /// Where it runs.
    pub fn vm(&self) -> &Rc<Vm> {
        &self.vm
    }

    /// What the functions of this state share.
    pub fn context(&self) -> &Rc<Context> {
        &self.context
    }

    /// Reads the options that the script declares and those that were given. For the main state, once.
    ///
    /// # Errors
    /// What was given does not fit, or the script's own declarations are wrong.
    pub fn read_options(&self) -> Result<(), Refused> {
        api::cmdline::read(self.lua(), &self.context)
    }

    /// Fills `sysbench.opt` with every option that was read.
    ///
    /// # Errors
    /// Lua has no memory.
    pub fn fill_options(&self) -> Result<(), ScriptError> {
        let options = self.context.front.options();
        api::opt::fill(self.lua(), self.context.program.compat, &options).map_err(told)
    }

    /// Whether `sysbench.hooks` has a function of that name.
    pub fn has_hook(&self, name: &str) -> bool {
        self.hook(name).is_ok_and(|hook| hook.is_some())
    }

    fn hook(&self, name: &str) -> mlua::Result<Option<Function>> {
        let hooks = self.globals.get::<Table>("sysbench")?.get::<Table>("hooks")?;
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
            let told = api::reports::stat(self.lua(), stat)?;
            let bound = self.lua().load("local hook, stat = ... return function() return hook(stat) end");
            self.task(bound.call((hook, told))?).map(Some)
        };
        made().map_err(told)
    }

    /// Whether there is a global function of that name.
    pub fn has_function(&self, name: &str) -> bool {
        matches!(self.globals.raw_get(name), Ok(mlua::Value::Function(_)))
    }
}
