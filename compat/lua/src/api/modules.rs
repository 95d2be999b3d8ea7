//! Where `require` looks: sysbench's paths, then the script's own folder, then modules that Debian's LuaJIT has.

use std::rc::Rc;

use mlua::{Function, Lua};

use crate::Context;
use crate::chunks;

const CODE: &str = include_str!("lua/modules.lua");

/// Where sysbench's own scripts are installed.
pub const SHARE: &str = "/usr/share/sysbench";

/// The environment's part in the paths.
#[derive(Clone, Copy, Debug, Default)]
pub struct Environment<'a> {
    /// `HOME`.
    pub home: Option<&'a str>,
    /// `LUA_PATH`.
    pub path: Option<&'a str>,
    /// `LUA_CPATH`.
    pub cpath: Option<&'a str>,
}

impl Environment<'_> {
    /// `package.path` with sysbench's default: the working folder, LuaRocks' folders, Lua's own, and `share`.
    pub fn package_path(&self, share: &str) -> String {
        let mut default = String::from("./?.lua;./?/init.lua;./src/lua/?.lua;");
        for rocks in self
            .home
            .iter()
            .flat_map(|home| ["5.1/", ""].map(|version| format!("{home}/.luarocks/share/lua/{version}")))
        {
            default.push_str(&format!("{rocks}?.lua;{rocks}?/init.lua;"));
        }
        default.push_str(&format!("/usr/local/share/lua/5.1/?.lua;/usr/share/lua/5.1/?.lua;{share}/?.lua;"));
        with_default(self.path, &default)
    }

    /// `package.cpath`, in the same order.
    pub fn package_cpath(&self) -> String {
        let mut default = String::from("./?.so;");
        for version in self.home.iter().flat_map(|_| ["5.1/", ""]) {
            default.push_str(&format!("{}/.luarocks/lib/lua/{version}?.so;", self.home.unwrap_or_default()));
        }
        let triple = format!("{}-linux-gnu", std::env::consts::ARCH);
        default.push_str(&format!(
            "/usr/local/lib/lua/5.1/?.so;/usr/lib/lua/5.1/?.so;/usr/lib/{triple}/sysbench;"
        ));
        with_default(self.cpath, &default)
    }
}

/// What a variable says, with the default for each `;;` in it, as Lua does; the default where there is no variable.
fn with_default(variable: Option<&str>, default: &str) -> String {
    match variable {
        Some(given) => given.replace(";;", &format!(";{default};")),
        None => default.to_owned(),
    }
}

pub(crate) fn install(lua: &Lua, context: &Rc<Context>) -> mlua::Result<()> {
    let folder = context.front.script_path().and_then(|path| path.rsplit_once('/')).map(|(folder, _)| folder);
    let code: Function = chunks::load(lua, "sysbench.lua", CODE.as_bytes())?;
    code.call((folder, chunks::file_loader(lua)?))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{Heard, state};

    #[test]
    fn paths_are_sysbenchs() {
        let environment = Environment { home: Some("/home/dba"), ..Environment::default() };
        // What sysbench 1.0.20 of Debian prints.
        assert_eq!(
            environment.package_path(SHARE),
            "./?.lua;./?/init.lua;./src/lua/?.lua;/home/dba/.luarocks/share/lua/5.1/?.lua;\
             /home/dba/.luarocks/share/lua/5.1/?/init.lua;/home/dba/.luarocks/share/lua/?.lua;\
             /home/dba/.luarocks/share/lua/?/init.lua;/usr/local/share/lua/5.1/?.lua;/usr/share/lua/5.1/?.lua;\
             /usr/share/sysbench/?.lua;"
        );
        let triple = format!("{}-linux-gnu", std::env::consts::ARCH);
        assert_eq!(
            environment.package_cpath(),
            format!(
                "./?.so;/home/dba/.luarocks/lib/lua/5.1/?.so;/home/dba/.luarocks/lib/lua/?.so;\
                 /usr/local/lib/lua/5.1/?.so;/usr/lib/lua/5.1/?.so;/usr/lib/{triple}/sysbench;"
            )
        );
        let bare = Environment::default();
        assert!(
            bare.package_path("/x").ends_with(
                "./src/lua/?.lua;/usr/local/share/lua/5.1/?.lua;/usr/share/lua/5.1/?.lua;/x/?.lua;"
            )
        );
    }

    #[test]
    fn variables_come_before_or_after_or_instead() {
        let path = |given| Environment { path: Some(given), ..Environment::default() }.package_path("/s");
        let default = Environment::default().package_path("/s");
        assert_eq!(path("/x/?.lua"), "/x/?.lua");
        assert_eq!(path("/x/?.lua;;"), format!("/x/?.lua;{default};"));
        assert_eq!(path(";;/y/?.lua"), format!(";{default};/y/?.lua"));
        assert_eq!(path(""), "");
    }

    #[test]
    fn modules_beside_the_script_are_found_last() {
        let folder = env!("CARGO_MANIFEST_DIR").to_owned() + "/tests/modules";
        let heard = std::sync::Arc::new(Heard {
            script_path: Some(format!("{folder}/main.lua")),
            ..Heard::default()
        });
        let text = "print(require('beside').name, require('inner.deep').name, require('beside') == require('beside'))
            print((select(2, pcall(require, 'nowhere')):match(\"no file '[^']*/nowhere/init.lua'$\")) ~= nil)
            print((select(2, pcall(require, 'broken')):match('^error loading module .broken. from file')))
            package.preload.beside2 = function() return 'preloaded' end print(require('beside2'))";
        state(text, &heard);
        let expected =
            "beside\tdeep in inner\ttrue\ntrue\nerror loading module 'broken' from file\npreloaded\n";
        assert_eq!(*heard.printed.lock().unwrap(), expected);
    }

    #[test]
    fn modules_of_debians_luajit_are_there() {
        let text = "local isempty, isarray = require('table.isempty'), require('table.isarray')
            local nkeys, clone = require('table.nkeys'), require('table.clone')
            print(isempty({}), isempty({false}), isarray({1, 2}), isarray({a = 1}), nkeys({1, 2, x = 3}), table.nkeys == nkeys)
            local one = {1, {2}} local other = clone(one) print(other ~= one, other[2] == one[2])
            print(type(require('table.new')), type(require('table.clear')))";
        let expected = "true\tfalse\ttrue\tfalse\t3\ttrue\ntrue\ttrue\nfunction\tfunction\n";
        assert_eq!(crate::testing::printed(text), expected);
    }
}
