//! Installs `sysbench.sql`, which interface.lua implements with the functions of `calls`.

use mlua::{Function, Lua, Table};

use super::calls;
use crate::compile;
use crate::config::ScriptConfig;
use crate::context::Context;
use dbdyno_sysbench::Compat;

/// The functions that interface.lua returns. All users of a state share them.
#[derive(Clone)]
struct Interface {
    /// Creates the `sysbench.sql` of one more user.
    create_for_user: Function,
    /// The functions of exported.lua in `ffi.C`.
    exported: Table,
}

/// The message of an error that `driver:connect()` raises.
pub(crate) const CONNECT_FAILED: &str = "connection creation failed";

/// The functions of exported.lua that scripts of sysbench 1.0 may declare by `ffi.cdef`.
const EXPORTED: &str = "db_create db_destroy db_connection_create db_connection_close db_connection_reconnect \
    db_connection_free db_bulk_insert_init db_bulk_insert_next db_bulk_insert_done db_query db_fetch_row db_prepare \
    db_bind_param db_bind_result db_execute db_close db_free_results sb_lua_set_test_args sb_print_test_options";
/// The functions that sysbench 1.1 adds.
const EXPORTED_V11: &str = " db_more_results db_next_result db_stmt_next_result";

pub(crate) fn install(lua: &Lua, context: &Context) -> mlua::Result<()> {
    if lua.app_data_ref::<Interface>().is_none() {
        let interface = load(lua, &context.config)?;
        lua.set_app_data(interface);
    }
    let create_for_user = lua.app_data_ref::<Interface>().expect("it was set above").create_for_user.clone();
    lua.globals().get::<Table>("sysbench")?.set("sql", create_for_user.call::<Table>(())?)
}

/// The functions of exported.lua, for all users of the state.
pub(crate) fn exported(lua: &Lua) -> Table {
    lua.app_data_ref::<Interface>().expect("`install` comes first").exported.clone()
}

fn load(lua: &Lua, config: &ScriptConfig) -> mlua::Result<Interface> {
    let raw = calls::table(lua)?;
    let is_1_1 = config.compat == Compat::V1_1;
    raw.raw_set("driver", config.database.driver.as_str())?;
    raw.raw_set("driver_error", config.database.driver_error.as_deref())?;
    raw.raw_set("connect_failed", CONNECT_FAILED)?;
    raw.raw_set("is_1_1", is_1_1)?;
    raw.raw_set("exported", [EXPORTED, if is_1_1 { EXPORTED_V11 } else { "" }].concat())?;
    let compile = |lua: &Lua, ()| compile::load(lua, "sysbench.sql.lua", include_bytes!("exported.lua"));
    raw.raw_set("compile_exported", lua.create_function(compile)?)?;
    let chunk = compile::load(lua, "sysbench.sql.lua", include_bytes!("interface.lua"))?;
    let (create_for_user, exported) = chunk.call(raw)?;
    Ok(Interface { create_for_user, exported })
}
