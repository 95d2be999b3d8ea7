//! What the loader is asked for.

/// A command of the engine that works on tables.
#[derive(Clone, Copy, Debug)]
pub(super) enum Command {
    Prepare,
    Cleanup,
    Prewarm,
}
