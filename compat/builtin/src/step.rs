//! Loops that a compiler leaves as they are.

/// A step of a loop. It costs nothing beside the loop itself, and a compiler neither leaves the loop out nor does several
/// of its steps at once.
#[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
#[allow(unsafe_code)] // No instruction at all, for the compiler not to know that.
#[inline(always)]
pub(crate) fn step() {
    // SAFETY: nothing is done.
    unsafe { std::arch::asm!("", options(nomem, nostack, preserves_flags)) };
}

/// A step of a loop that a compiler does not leave out.
#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
#[inline(always)]
pub(crate) fn step() {
    std::hint::black_box(());
}
