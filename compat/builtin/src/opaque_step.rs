//! A loop step that the compiler does not optimise away.

/// Keeps the compiler from removing, unrolling or vectorising the loop that calls it. Costs nothing.
#[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
#[allow(unsafe_code)] // An empty instruction list, which is opaque to the compiler.
#[inline(always)]
pub(crate) fn opaque_step() {
    // SAFETY: there is no instruction.
    unsafe { std::arch::asm!("", options(nomem, nostack, preserves_flags)) };
}

#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
#[inline(always)]
pub(crate) fn opaque_step() {
    std::hint::black_box(());
}
