//! Where `require` finds modules: in sysbench's paths, among the modules built into Debian's LuaJIT, and in the script's
//! folder.

use mlua::{Function, Lua};

use crate::compile;
use crate::context::Context;

const CODE: &str = include_str!("lua/modules.lua");

/// The folder of sysbench's own scripts.
pub const SHARE_DIR: &str = "/usr/share/sysbench";

/// `package.path` and `package.cpath`.
#[derive(Clone, Debug)]
pub struct ModulePaths {
    /// For modules in Lua.
    pub path: String,
    /// For modules in C.
    pub cpath: String,
}

impl ModulePaths {
    /// The paths of sysbench: the working folder, LuaRocks' folders, Lua's own paths, and those of sysbench's package.
    /// `variable` returns the environment variables `HOME`, `LUA_PATH` and `LUA_CPATH`.
    pub fn new(variable: impl Fn(&str) -> Option<String>) -> Self {
        let home = variable("HOME");
        let rocks = |kind: &str, files: &[&str]| -> String {
            let versions = home.iter().flat_map(|home| ["5.1/", ""].map(|version| (home, version)));
            let folders = versions.map(|(home, version)| format!("{home}/.luarocks/{kind}/lua/{version}"));
            folders.flat_map(|folder| files.iter().map(move |file| format!("{folder}{file};"))).collect()
        };
        let path = format!(
            "./?.lua;./?/init.lua;./src/lua/?.lua;{}/usr/local/share/lua/5.1/?.lua;/usr/share/lua/5.1/?.lua;{SHARE_DIR}/?.lua;",
            rocks("share", &["?.lua", "?/init.lua"])
        );
        let cpath = format!(
            "./?.so;{}/usr/local/lib/lua/5.1/?.so;/usr/lib/lua/5.1/?.so;/usr/lib/{}-linux-gnu/sysbench;",
            rocks("lib", &["?.so"]),
            std::env::consts::ARCH
        );
        Self {
            path: with_default(variable("LUA_PATH"), &path),
            cpath: with_default(variable("LUA_CPATH"), &cpath),
        }
    }
}

/// As in Lua, each `;;` in the variable means the default path; an unset variable also means the default path.
fn with_default(variable: Option<String>, default: &str) -> String {
    match variable {
        Some(text) => text.replace(";;", &format!(";{default};")),
        None => default.to_owned(),
    }
}

pub(super) fn install(lua: &Lua, context: &Context) -> mlua::Result<()> {
    let folder = context.host.script_path().and_then(|path| path.rsplit_once('/')).map(|(folder, _)| folder);
    let code: Function = compile::load(lua, "sysbench.lua", CODE.as_bytes())?;
    code.call((folder, compile::file_loader(lua)?))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{RecordingHost, state};

    #[test]
    fn module_paths_match_sysbench() {
        let paths = ModulePaths::new(|name| (name == "HOME").then(|| "/home/dba".to_owned()));
        // What sysbench 1.0.20 of Debian prints.
        assert_eq!(
            paths.path,
            "./?.lua;./?/init.lua;./src/lua/?.lua;/home/dba/.luarocks/share/lua/5.1/?.lua;\
             /home/dba/.luarocks/share/lua/5.1/?/init.lua;/home/dba/.luarocks/share/lua/?.lua;\
             /home/dba/.luarocks/share/lua/?/init.lua;/usr/local/share/lua/5.1/?.lua;/usr/share/lua/5.1/?.lua;\
             /usr/share/sysbench/?.lua;"
        );
        let triple = format!("{}-linux-gnu", std::env::consts::ARCH);
        assert_eq!(
            paths.cpath,
            format!(
                "./?.so;/home/dba/.luarocks/lib/lua/5.1/?.so;/home/dba/.luarocks/lib/lua/?.so;\
                 /usr/local/lib/lua/5.1/?.so;/usr/lib/lua/5.1/?.so;/usr/lib/{triple}/sysbench;"
            )
        );
        let bare = ModulePaths::new(|_| None).path;
        assert!(bare.contains("./src/lua/?.lua;/usr/local/share/lua/5.1/?.lua;"), "{bare}");
    }

    #[test]
    fn lua_path_extends_or_replaces_the_default() {
        let path = |text: &str| ModulePaths::new(|name| (name == "LUA_PATH").then(|| text.to_owned())).path;
        let default = ModulePaths::new(|_| None).path;
        assert_eq!(path("/x/?.lua"), "/x/?.lua");
        assert_eq!(path("/x/?.lua;;"), format!("/x/?.lua;{default};"));
        assert_eq!(path(";;/y/?.lua"), format!(";{default};/y/?.lua"));
        assert_eq!(path(""), "");
    }

    #[test]
    fn modules_in_the_script_folder_are_found_last() {
        let folder = env!("CARGO_MANIFEST_DIR").to_owned() + "/tests/modules";
        let host = std::sync::Arc::new(RecordingHost {
            script_path: Some(format!("{folder}/main.lua")),
            ..RecordingHost::default()
        });
        let text = "print(require('beside').name, require('inner.deep').name, require('beside') == require('beside'))
            print((select(2, pcall(require, 'nowhere')):match(\"no file '[^']*/nowhere/init.lua'$\")) ~= nil)
            print((select(2, pcall(require, 'broken')):match('^error loading module .broken. from file')))
            package.preload.beside2 = function() return 'preloaded' end print(require('beside2'))";
        state(text, &host);
        let expected =
            "beside\tdeep in inner\ttrue\ntrue\nerror loading module 'broken' from file\npreloaded\n";
        assert_eq!(*host.printed.lock().unwrap(), expected);
    }

    #[test]
    fn modules_of_debians_luajit_exist() {
        let text = "local isempty, isarray = require('table.isempty'), require('table.isarray')
            local nkeys, clone = require('table.nkeys'), require('table.clone')
            print(isempty({}), isempty({false}), isarray({1, 2}), isarray({a = 1}), nkeys({1, 2, x = 3}), table.nkeys == nkeys)
            local one = {1, {2}} local other = clone(one) print(other ~= one, other[2] == one[2])
            print(type(require('table.new')), type(require('table.clear')))";
        let expected = "true\tfalse\ttrue\tfalse\t3\ttrue\ntrue\ttrue\nfunction\tfunction\n";
        assert_eq!(crate::testing::printed(text), expected);
    }
}
