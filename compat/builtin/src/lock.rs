//! The C library's locks, which are what the `threads` and `mutex` tests measure: others spin before they wait, or hand the
//! lock over in another order, and would tell another figure of the same machine.
#![allow(unsafe_code)] // Functions of the C library.

use std::cell::UnsafeCell;

/// Locks that stay where they are, as the C library demands.
pub(crate) struct Locks(Box<[Lock]>);

/// One lock; it protects nothing.
pub(crate) struct Lock(UnsafeCell<libc::pthread_mutex_t>);

// SAFETY: threads share these locks by what they are made for.
unsafe impl Sync for Lock {}

impl Locks {
    /// So many.
    pub(crate) fn new(count: usize) -> Self {
        Self((0..count).map(|_| Lock(UnsafeCell::new(libc::PTHREAD_MUTEX_INITIALIZER))).collect())
    }

    /// How many.
    pub(crate) fn len(&self) -> usize {
        self.0.len()
    }

    /// One of them.
    #[inline]
    pub(crate) fn get(&self, number: usize) -> &Lock {
        &self.0[number]
    }
}

impl Lock {
    /// Does something that does not fail while no other thread does something under the same lock.
    #[inline]
    pub(crate) fn hold(&self, work: impl FnOnce()) {
        // SAFETY: it is initialised, has not moved since, and is locked once by this thread.
        unsafe { libc::pthread_mutex_lock(self.0.get()) };
        work();
        // SAFETY: this thread holds it.
        unsafe { libc::pthread_mutex_unlock(self.0.get()) };
    }
}

impl Drop for Lock {
    fn drop(&mut self) {
        // SAFETY: nobody holds it: that would be a reference.
        unsafe { libc::pthread_mutex_destroy(self.0.get()) };
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicU64, Ordering};

    use super::*;

    #[test]
    fn one_thread_at_a_time() {
        let (locks, counter) = (Locks::new(2), AtomicU64::new(0));
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    for _ in 0..10_000 {
                        // No single step: without the lock some of them would be lost.
                        locks.get(1).hold(|| {
                            let seen = counter.load(Ordering::Relaxed);
                            std::hint::spin_loop();
                            counter.store(seen + 1, Ordering::Relaxed);
                        });
                    }
                });
            }
        });
        assert_eq!((counter.into_inner(), locks.len()), (40_000, 2));
    }
}
