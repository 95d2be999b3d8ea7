//! `sysbench.cmdline`: the command line and the options that a script declares.
//!
//! Messages have sysbench's text, because users search for it.

use std::ffi::CString;

use dbdyno_sysbench::option_definition::{Kind, OptionDefinition};
use dbdyno_sysbench::registry::parse_bool;
use mlua::{Function, Lua, Table, Value};

use crate::compile;
use crate::context::{Context, current};

const CODE: &str = include_str!("lua/cmdline.lua");

/// Option types, numbered from 1 in `sysbench.cmdline`.
const KINDS: [(&str, Kind); 7] = [
    ("BOOL", Kind::Bool),
    ("INT", Kind::Int),
    ("SIZE", Kind::Size),
    ("DOUBLE", Kind::Double),
    ("STRING", Kind::String),
    ("LIST", Kind::List),
    ("FILE", Kind::File),
];

/// Why the options could not be read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum OptionsError {
    /// The command line is invalid. The text is the line to print.
    #[error("{0}")]
    Usage(String),
    /// The script's declarations are invalid, or a validator raised an error.
    #[error("{0}")]
    Script(String),
}

impl From<mlua::Error> for OptionsError {
    fn from(error: mlua::Error) -> Self {
        OptionsError::Script(crate::error::message(&error))
    }
}

fn script_error(text: impl Into<String>) -> OptionsError {
    OptionsError::Script(text.into())
}

struct ScriptOption {
    definition: OptionDefinition,
    validator: Option<Function>,
}

pub(super) fn install(lua: &Lua, context: &Context) -> mlua::Result<()> {
    let host = &context.host;
    let cmdline = lua.create_table()?;
    let argv = lua.create_table()?;
    for (position, argument) in host.argv().iter().enumerate() {
        argv.raw_set(position, argument.as_str())?;
    }
    cmdline.set("argv", argv)?;
    cmdline.set("command", host.command())?;
    cmdline.set("script_path", host.script_path())?;
    cmdline.set("ARG_NULL", 0)?;
    for (number, (name, _)) in (1..).zip(KINDS) {
        cmdline.set(format!("ARG_{name}"), number)?;
    }
    cmdline.set("ARG_MAX", KINDS.len() + 1)?;
    cmdline.set("PARALLEL_COMMAND", true)?;
    let print_options = lua.create_function(|lua, ()| {
        let Some(context) = current() else { return Ok(None) };
        let print = |options: Vec<OptionDefinition>| context.host.print_options(&options);
        let declared = declared_options(lua).map(Option::unwrap_or_default);
        Ok(declared.map(print).err().map(|error| error.to_string()))
    })?;
    let read_options = lua.create_function(|lua, ()| {
        let Some(context) = current() else { return Ok(None) };
        Ok(read(lua, &context).err().map(|error| error.to_string()))
    })?;
    lua.globals().get::<Table>("sysbench")?.set("cmdline", &cmdline)?;
    let code: Function = compile::load(lua, "sysbench.cmdline.lua", CODE.as_bytes())?;
    code.call((cmdline, print_options, read_options))
}

fn cmdline_table(lua: &Lua) -> mlua::Result<Table> {
    lua.globals().get::<Table>("sysbench")?.get("cmdline")
}

/// Whether the script has not set `sysbench.cmdline.options`.
pub(crate) fn declares_no_options(lua: &Lua) -> mlua::Result<bool> {
    Ok(cmdline_table(lua)?.get::<Value>("options")?.is_nil())
}

/// The options that the script declares, by name; `None` if it has not set `sysbench.cmdline.options`.
pub fn declared_options(lua: &Lua) -> Result<Option<Vec<OptionDefinition>>, OptionsError> {
    Ok(script_options(lua)?.map(definitions))
}

fn definitions(options: Vec<ScriptOption>) -> Vec<OptionDefinition> {
    options.into_iter().map(|option| option.definition).collect()
}

/// Validates the options that the script declares, then lets the host read all options.
pub fn read(lua: &Lua, context: &Context) -> Result<(), OptionsError> {
    let options = script_options(lua)?;
    for option in options.iter().flatten() {
        if let Some(validator) = &option.validator {
            validate(lua, context, &option.definition.name, validator)?;
        }
    }
    let declared = options.map(definitions);
    context.host.read_options(declared.as_deref()).map(drop).map_err(OptionsError::Usage)
}

/// Calls `validator` for every value of the option `name` on the command line. As in sysbench, its arguments are two
/// `const char *`: the option's name as typed, and the value.
fn validate(lua: &Lua, context: &Context, name: &str, validator: &Function) -> Result<(), OptionsError> {
    let name = name.replace('-', "_");
    let pointer: Function = lua.load("return ffi.cast('const char *', ...)").into_function()?;
    for argument in context.host.argv().iter().skip(1) {
        let Some(option) = argument.strip_prefix("--") else { continue };
        let (typed, value) = option.split_once('=').unwrap_or((option, ""));
        if typed.replace('-', "_") != name {
            continue;
        }
        // The validator gets pointers, so both strings must live until it returns.
        let (typed, value) = (CString::new(typed), CString::new(value));
        let (Ok(typed), Ok(value)) = (typed, value) else { continue };
        let cdata =
            |text: &CString| pointer.call::<Value>(mlua::LightUserData(text.as_ptr().cast_mut().cast()));
        if !validator.call::<bool>((cdata(&typed)?, cdata(&value)?))? {
            return Err(OptionsError::Usage(format!("invalid option: {argument}")));
        }
    }
    Ok(())
}

/// The command `name` that the script declares, as a function without arguments that returns a boolean. The second
/// value says whether the command runs in parallel.
pub fn command(lua: &Lua, name: &str) -> mlua::Result<Option<(Function, bool)>> {
    let cmdline = cmdline_table(lua)?;
    if !cmdline.get::<Function>("command_defined")?.call::<bool>(name)? {
        return Ok(None);
    }
    let parallel = cmdline.get::<Function>("command_parallel")?.call::<bool>(name)?;
    let bound = lua.load("local call, name = ... return function() return call(name) end");
    let function = bound.call::<Function>((cmdline.get::<Function>("call_command")?, name))?;
    Ok(Some((function, parallel)))
}

/// The options that the script declares, by name, with their validators.
fn script_options(lua: &Lua) -> Result<Option<Vec<ScriptOption>>, OptionsError> {
    let table = match cmdline_table(lua)?.get::<Value>("options")? {
        Value::Nil => return Ok(None),
        Value::Table(table) => table,
        other => {
            let kind = type_name(&other);
            return Err(script_error(format!("wrong type for sysbench.cmdline.options: {kind}")));
        }
    };
    let mut options = Vec::new();
    for pair in table.pairs::<Value, Value>() {
        let (Value::String(name), Value::Table(option)) = pair? else {
            return Err(script_error("wrong table structure in sysbench.cmdline.options"));
        };
        options.push(parse_option(lua, name.to_string_lossy(), &option)?);
    }
    options.sort_by(|one, other| one.definition.name.cmp(&other.definition.name));
    Ok(Some(options))
}

/// Reads `{description, default, type, validator}`.
fn parse_option(lua: &Lua, name: String, option: &Table) -> Result<ScriptOption, OptionsError> {
    let help = match option.get::<Value>(1)? {
        Value::Nil => return Err(script_error(format!("nil description for option {name}"))),
        number @ (Value::Integer(_) | Value::Number(_)) => return Err(not_a_string(&number)),
        value => to_text(lua, value)?,
    };
    let kind = option.get::<Value>(3)?;
    let (default, inferred) = match option.get::<Value>(2)? {
        Value::Nil => (None, Kind::String),
        Value::Boolean(value) => (Some(if value { "on" } else { "off" }.to_owned()), Kind::Bool),
        Value::Table(values) => {
            if !kind.is_nil() {
                return Err(script_error(format!("wrong type for list option {name}")));
            }
            (Some(join_values(lua, &values)?), Kind::List)
        }
        value @ (Value::Number(_) | Value::Integer(_)) => (Some(to_text(lua, value)?), Kind::Double),
        value => (Some(to_text(lua, value)?), Kind::String),
    };
    let kind = if kind.is_nil() { inferred } else { parse_kind(&kind)? };
    if let (Kind::Bool, Some(text)) = (kind, &default)
        && parse_bool(text).is_none()
    {
        let text = format!("The default of the boolean option '{name}' is '{text}'; it must be on or off");
        return Err(OptionsError::Usage(text));
    }
    let validator = match option.get::<Value>(4)? {
        Value::Nil => None,
        Value::Function(validator) => Some(validator),
        other => {
            return Err(script_error(format!("cannot convert '{}' to 'bool (*)()'", type_name(&other))));
        }
    };
    Ok(ScriptOption { definition: OptionDefinition { name, kind, default, help: Some(help) }, validator })
}

/// Parses an option type: its number, or its name in C.
fn parse_kind(value: &Value) -> Result<Kind, OptionsError> {
    let number = match value {
        Value::Integer(number) => *number,
        Value::Number(number) => *number as i64,
        Value::String(name) => {
            let name = name.to_string_lossy();
            let short = name.strip_prefix("SB_ARG_TYPE_").unwrap_or_default();
            let kind = KINDS.iter().find(|(known, _)| *known == short).map(|&(_, kind)| kind);
            return kind.ok_or_else(|| script_error("cannot convert 'string' to 'sb_arg_type_t'"));
        }
        other => {
            return Err(script_error(format!("cannot convert '{}' to 'sb_arg_type_t'", type_name(other))));
        }
    };
    let known = usize::try_from(number.saturating_sub(1)).ok().and_then(|index| KINDS.get(index));
    known
        .map(|&(_, kind)| kind)
        .ok_or_else(|| OptionsError::Usage(format!("Unknown argument type: {number}")))
}

/// A string, or a number as Lua writes it.
fn to_text(lua: &Lua, value: Value) -> Result<String, OptionsError> {
    let text = lua.coerce_string(value.clone())?;
    text.map(|text| text.to_string_lossy()).ok_or_else(|| not_a_string(&value))
}

fn not_a_string(value: &Value) -> OptionsError {
    script_error(format!("cannot convert '{}' to 'const char *'", type_name(value)))
}

/// The name of a value's type in Lua; mlua has another name for integers.
fn type_name(value: &Value) -> &'static str {
    match value {
        Value::Integer(_) => "number",
        other => other.type_name(),
    }
}

/// The elements of a list, joined by commas.
fn join_values(lua: &Lua, values: &Table) -> Result<String, OptionsError> {
    let mut texts = Vec::new();
    for (position, value) in (1..).zip(values.sequence_values::<Value>()) {
        let value = value?;
        let kind = type_name(&value);
        let Some(text) = lua.coerce_string(value)? else {
            let text = format!("invalid value ({kind}) at index {position} in table for 'concat'");
            return Err(script_error(text));
        };
        texts.push(text.to_string_lossy());
    }
    Ok(texts.join(","))
}

#[cfg(test)]
mod tests;
