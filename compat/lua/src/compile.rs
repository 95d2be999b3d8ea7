//! Compiles Lua code. In a Lua state that several users share, each chunk is compiled once for all of them.
//!
//! A shared state wraps the chunk in a function that returns the chunk as a new function. It calls this wrapper once
//! per user, with the user's globals as environment. Each user gets its own function, and all users share the bytecode.

use std::collections::HashMap;

use mlua::{Function, Lua};

/// The chunks that a shared state has compiled.
pub(crate) struct CompiledChunks {
    /// The compiled wrappers by name and text of the chunk; `None` if the chunk cannot be shared.
    wrappers: HashMap<String, HashMap<Vec<u8>, Option<Function>>>,
    file_loader: Function,
}

impl CompiledChunks {
    pub(crate) fn new(file_loader: Function) -> Self {
        Self { wrappers: HashMap::new(), file_loader }
    }
}

/// The first byte of LuaJIT's bytecode.
const BYTECODE: u8 = 0x1b;

/// Compiles `text` for the current globals. `name` is a chunk name in Lua's form: `@` and a path, or `=` and a word.
///
/// # Errors
/// LuaJIT's message, if the text is not valid Lua.
pub(crate) fn load(lua: &Lua, name: &str, text: &[u8]) -> mlua::Result<Function> {
    let compile_plain = || lua.load(text).set_name(name).into_function();
    let known = match lua.app_data_ref::<CompiledChunks>() {
        None => return compile_plain(),
        Some(chunks) => chunks.wrappers.get(name).and_then(|texts| texts.get(text)).cloned(),
    };
    let wrapper = match known {
        Some(wrapper) => wrapper,
        None => {
            // Compile the chunk without the wrapper first, so that error messages do not refer to the wrapper.
            compile_plain()?;
            let wrapper = compile_wrapper(lua, name, text);
            let mut chunks = lua.app_data_mut::<CompiledChunks>().expect("`app_data_ref` returned it above");
            chunks.wrappers.entry(name.to_owned()).or_default().insert(text.to_vec(), wrapper.clone());
            wrapper
        }
    };
    match wrapper {
        None => compile_plain(),
        Some(wrapper) => {
            wrapper.set_environment(lua.globals())?;
            wrapper.call(())
        }
    }
}

fn compile_wrapper(lua: &Lua, name: &str, text: &[u8]) -> Option<Function> {
    if text.first() == Some(&BYTECODE) {
        return None;
    }
    // The wrapper begins on the chunk's first line, to keep line numbers.
    let wrapped = [b"return function(...) ".as_slice(), text, b"\nend"].concat();
    lua.load(wrapped).set_name(name).into_function().ok()
}

/// `loadstring` of a shared state. Returns the chunk, or nil and the error.
pub(crate) fn load_text(
    lua: &Lua,
    (name, text): (String, mlua::String),
) -> mlua::Result<(Option<Function>, Option<String>)> {
    match load(lua, &name, without_first_line(&text.as_bytes())) {
        Ok(chunk) => Ok((Some(chunk), None)),
        Err(error) => Ok((None, Some(crate::error::message(&error)))),
    }
}

/// `loadfile`, or its replacement in a shared state.
pub(crate) fn file_loader(lua: &Lua) -> mlua::Result<Function> {
    match lua.app_data_ref::<CompiledChunks>() {
        Some(chunks) => Ok(chunks.file_loader.clone()),
        None => lua.globals().get("loadfile"),
    }
}

/// Removes a first line that begins with `#`. Keeps its line break, so that line numbers stay the same.
pub(crate) fn without_first_line(text: &[u8]) -> &[u8] {
    if text.first() != Some(&b'#') {
        return text;
    }
    let end = text.iter().position(|&byte| byte == b'\n').unwrap_or(text.len());
    &text[end..]
}
