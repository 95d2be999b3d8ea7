//! Chunks: loaded, and in a shared state compiled once for all its users.
//!
//! A function that returns the chunk as a function is compiled, and called once for each user with the user's globals as
//! its environment: what it returns is new, and its code is not.

use std::collections::HashMap;
use std::fs;

use mlua::{Function, Lua};

/// What was compiled in a shared state, by name and text; `None` where it cannot be shared.
#[derive(Default)]
pub(crate) struct Chunks {
    by_text: HashMap<(String, Vec<u8>), Option<Function>>,
    /// Texts of files, each read once.
    files: HashMap<String, Vec<u8>>,
}

/// What LuaJIT's bytecode begins with.
const BYTECODE: u8 = 0x1b;

/// The chunk `text`, named as Lua wants it (`@` and a path, or `=` and a word), in the globals that are current.
///
/// # Errors
/// It is not Lua; in LuaJIT's own words.
pub(crate) fn load(lua: &Lua, name: &str, text: &[u8]) -> mlua::Result<Function> {
    let plain = || lua.load(text).set_name(name).into_function();
    let key = (name.to_owned(), text.to_vec());
    let known = match lua.app_data_ref::<Chunks>() {
        None => return plain(),
        Some(chunks) => chunks.by_text.get(&key).cloned(),
    };
    let maker = match known {
        Some(maker) => maker,
        None => {
            // Its faults in its own words, before it stands in another function.
            plain()?;
            let maker = maker(lua, name, text);
            let mut chunks = lua.app_data_mut::<Chunks>().expect("it was there");
            chunks.by_text.insert(key, maker.clone());
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

/// What `loadfile` returns for `path`: the chunk, or nothing and why not.
pub(crate) fn load_file(lua: &Lua, path: String) -> mlua::Result<(Option<Function>, Option<String>)> {
    let known = lua.app_data_ref::<Chunks>().and_then(|chunks| chunks.files.get(&path).cloned());
    let text = match known {
        Some(text) => text,
        None => match fs::read(&path) {
            Ok(text) => {
                if let Some(mut chunks) = lua.app_data_mut::<Chunks>() {
                    chunks.files.insert(path.clone(), text.clone());
                }
                text
            }
            Err(error) => {
                // As the C library says it.
                let reason = error.to_string();
                let reason = reason.split(" (os error").next().unwrap_or_default();
                return Ok((None, Some(format!("cannot open {path}: {reason}"))));
            }
        },
    };
    match load(lua, &format!("@{path}"), without_first_line(&text)) {
        Ok(chunk) => Ok((Some(chunk), None)),
        Err(error) => Ok((None, Some(crate::task::message(&error)))),
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
