//! Chunks: loaded, and in a shared state compiled once for all its users.
//!
//! A function that returns the chunk as a function is compiled, and called once for each user with the user's globals as
//! its environment: what it returns is new, and its code is not.

use std::collections::HashMap;

use mlua::{Function, Lua};

/// What was compiled in a shared state.
pub(crate) struct Chunks {
    /// By name and text; `None` where it cannot be shared.
    makers: HashMap<String, HashMap<Vec<u8>, Option<Function>>>,
    file_loader: Function,
}

impl Chunks {
    /// In a state where `file_loader` loads files.
    pub(crate) fn new(file_loader: Function) -> Self {
        Self { makers: HashMap::new(), file_loader }
    }
}

/// What LuaJIT's bytecode begins with.
const BYTECODE: u8 = 0x1b;

/// The chunk `text`, named as Lua wants it (`@` and a path, or `=` and a word), in the globals that are current.
///
/// # Errors
/// It is not Lua; in LuaJIT's own words.
pub(crate) fn load(lua: &Lua, name: &str, text: &[u8]) -> mlua::Result<Function> {
    let plain = || lua.load(text).set_name(name).into_function();
    let known = match lua.app_data_ref::<Chunks>() {
        None => return plain(),
        Some(chunks) => chunks.makers.get(name).and_then(|of| of.get(text)).cloned(),
    };
    let maker = match known {
        Some(maker) => maker,
        None => {
            // Its faults in its own words, before it stands in another function.
            plain()?;
            let maker = maker(lua, name, text);
            let mut chunks = lua.app_data_mut::<Chunks>().expect("it was there");
            chunks.makers.entry(name.to_owned()).or_default().insert(text.to_vec(), maker.clone());
            maker
        }
    };
    match maker {
        None => plain(),
        Some(maker) => {
            maker.set_environment(lua.globals())?;
            maker.call(())
        }
    }
}

fn maker(lua: &Lua, name: &str, text: &[u8]) -> Option<Function> {
    if text.first() == Some(&BYTECODE) {
        return None;
    }
    // On its first line, so that lines keep their numbers.
    let whole = [b"return function(...) ".as_slice(), text, b"\nend"].concat();
    lua.load(whole).set_name(name).into_function().ok()
}

/// What `loadstring` returns: the chunk, or nothing and why not.
pub(crate) fn load_text(
    lua: &Lua,
    (name, text): (String, mlua::String),
) -> mlua::Result<(Option<Function>, Option<String>)> {
    match load(lua, &name, without_first_line(&text.as_bytes())) {
        Ok(chunk) => Ok((Some(chunk), None)),
        Err(error) => Ok((None, Some(crate::error::message(&error)))),
    }
}

/// What loads files: `loadfile`, or its like in a shared state.
pub(crate) fn file_loader(lua: &Lua) -> mlua::Result<Function> {
    match lua.app_data_ref::<Chunks>() {
        Some(chunks) => Ok(chunks.file_loader.clone()),
        None => lua.globals().get("loadfile"),
    }
}

/// The chunk without a first line that begins with `#`; the line's end stays, so that lines keep their numbers.
pub(crate) fn without_first_line(text: &[u8]) -> &[u8] {
    if text.first() != Some(&b'#') {
        return text;
    }
    let end = text.iter().position(|&byte| byte == b'\n').unwrap_or(text.len());
    &text[end..]
}
