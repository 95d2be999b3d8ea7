//! The LuaJIT states of one thread's users.

use std::rc::Rc;

use crate::vm::{USERS_MAX, Vm};

use super::LuaFailure;
use super::player::Making;

/// Users of a thread from which on they share states. Fewer have their code in the caches anyway.
const SHARED_FROM: usize = 17;

/// One for each user, or for many.
pub(super) struct Vms {
    shared: Vec<Rc<Vm>>,
    jit: bool,
}

impl Vms {
    /// For as many users.
    pub(super) fn new(making: &Making, users: usize) -> Result<Self, LuaFailure> {
        let count = if making.shared && users >= SHARED_FROM { users.div_ceil(USERS_MAX) } else { 0 };
        let shared = (0..count).map(|_| Vm::shared(making.jit)).collect::<Result<_, _>>();
        Ok(Self { shared: shared.map_err(|error| LuaFailure::Chunk(error.to_string()))?, jit: making.jit })
    }

    /// That of the user at `position`.
    pub(super) fn of(&self, position: usize) -> Result<Rc<Vm>, LuaFailure> {
        match self.shared.get(position / USERS_MAX) {
            Some(vm) => Ok(Rc::clone(vm)),
            None => Vm::own(self.jit).map_err(|error| LuaFailure::Chunk(error.to_string())),
        }
    }

    /// Gives back what making the users has left behind, where they share a state.
    pub(super) fn collect(&self) -> Result<(), LuaFailure> {
        self.shared
            .iter()
            .try_for_each(|vm| vm.collect())
            .map_err(|error| LuaFailure::function("thread_init", error))
    }
}
