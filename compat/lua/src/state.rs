//! One user's script in a LuaJIT state.

use std::rc::Rc;
use std::sync::Arc;

use mlua::{Function, Lua, Table, Value};

use crate::api;
use crate::api::cmdline::OptionsError;
use crate::compile;
use crate::config::{ScriptConfig, Source};
use crate::context::{Context, RequestHandler};
use crate::error::ScriptError;
use crate::host::{ScriptHost, Stat};
use crate::task::Task;
use crate::vm::Vm;

/// The globals of one user, with sysbench's interface. Lives on one thread.
pub struct State {
    vm: Rc<Vm>,
    globals: Table,
    context: Rc<Context>,
}

impl State {
    /// Adds user `tid` to `vm`, without running the script.
    pub fn new(
        tid: i64,
        config: &Arc<ScriptConfig>,
        host: &Arc<dyn ScriptHost>,
        handler: Rc<dyn RequestHandler>,
        vm: &Rc<Vm>,
    ) -> Result<Self, ScriptError> {
        let context = Rc::new(Context::new(tid, Arc::clone(config), Arc::clone(host), handler));
        let globals = vm.add_user(&context)?;
        let state = Self { vm: Rc::clone(vm), globals, context };
        api::install(state.lua(), &state.context)?;
        Ok(state)
    }

    /// The LuaJIT state, after this user's globals have become current.
    pub fn lua(&self) -> &Lua {
        self.vm.activate(&self.context, &self.globals)
    }

    pub fn vm(&self) -> &Rc<Vm> {
        &self.vm
    }

    pub fn context(&self) -> &Rc<Context> {
        &self.context
    }

    /// The script's chunk, which runs once.
    pub fn chunk(&self) -> Result<Task, ScriptError> {
        let lua = self.lua();
        let chunk = match &self.context.config.source {
            Source::Text { text, chunk } => compile::load(lua, chunk, compile::without_first_line(text))?,
            Source::File(path) => match compile::file_loader(lua)?.call(path.as_str())? {
                (Some(chunk), _) => chunk,
                (None, message) => return Err(ScriptError::Message(Option::unwrap_or_default(message))),
            },
            Source::Module(name) => {
                lua.load("local name = ... return function() require(name) end").call(name.as_str())?
            }
        };
        self.task(chunk)
    }

    fn task(&self, function: Function) -> Result<Task, ScriptError> {
        self.lua();
        Ok(Task::new(&self.vm, &self.context, function)?)
    }

    fn function(&self, name: &str) -> Option<Function> {
        self.globals.raw_get::<Value>(name).ok()?.as_function().cloned()
    }

    pub fn has_function(&self, name: &str) -> bool {
        self.function(name).is_some()
    }

    /// The global function `name`, if there is one.
    pub fn global(&self, name: &str) -> Result<Option<Task>, ScriptError> {
        self.function(name).map(|function| self.task(function)).transpose()
    }

    /// The function that runs one event, and repeats the event while it fails with RESTART_EVENT.
    pub fn event(&self) -> Result<Task, ScriptError> {
        self.task(api::events::event_function(&self.context))
    }

    /// The script's own `thread_run`, if it has one.
    pub fn thread_run(&self) -> Result<Option<Task>, ScriptError> {
        let function = api::events::own_thread_run(self.lua(), &self.context)?;
        function.map(|function| self.task(function)).transpose()
    }

    /// The command `name` of `sysbench.cmdline.commands`, which returns a boolean. The second value says whether it
    /// runs in parallel.
    pub fn command(&self, name: &str) -> Result<Option<(Task, bool)>, ScriptError> {
        let command = api::cmdline::command(self.lua(), name)?;
        command.map(|(function, parallel)| Ok((self.task(function)?, parallel))).transpose()
    }

    /// Reads the options of the command line, including those that the script declares.
    pub fn read_options(&self) -> Result<(), OptionsError> {
        api::cmdline::read(self.lua(), &self.context)
    }

    /// Fills `sysbench.opt`.
    pub fn fill_options(&self) -> Result<(), ScriptError> {
        let options = self.context.host.options();
        Ok(api::opt::fill(self.lua(), self.context.config.compat, &options)?)
    }

    fn hook(&self, name: &str) -> mlua::Result<Option<Function>> {
        let hooks = self.globals.get::<Table>("sysbench")?.get::<Table>("hooks")?;
        Ok(hooks.get::<Value>(name)?.as_function().cloned())
    }

    pub fn has_hook(&self, name: &str) -> bool {
        self.hook(name).is_ok_and(|hook| hook.is_some())
    }

    /// The report hook `name`, bound to `stat`.
    pub fn report(&self, name: &str, stat: &Stat) -> Result<Option<Task>, ScriptError> {
        let Some(hook) = self.hook(name)? else { return Ok(None) };
        let stat = api::reports::hook_argument(self.lua(), stat)?;
        let bound = self.lua().load("local hook, stat = ... return function() return hook(stat) end");
        self.task(bound.call((hook, stat))?).map(Some)
    }
}
