//! The C library's locks, which the `threads` and `mutex` tests measure. Other locks spin before they wait, or wake waiters in
//! another order, so their results could not be compared with sysbench's.
#![allow(unsafe_code)] // Functions of the C library.

use std::cell::UnsafeCell;

/// Boxed, because the C library's locks must not move.
pub(crate) struct Locks(Box<[Lock]>);

pub(crate) struct Lock(UnsafeCell<libc::pthread_mutex_t>);

// SAFETY: pthread mutexes may be shared between threads.
unsafe impl Sync for Lock {}

impl Locks {
    pub(crate) fn new(count: usize) -> Self {
        Self((0..count).map(|_| Lock(UnsafeCell::new(libc::PTHREAD_MUTEX_INITIALIZER))).collect())
    }

    pub(crate) fn len(&self) -> usize {
        self.0.len()
    }

    #[inline]
    pub(crate) fn get(&self, index: usize) -> &Lock {
        &self.0[index]
    }
}

impl Lock {
    /// Calls `action` while holding the lock. `action` must not panic.
    #[inline]
    pub(crate) fn hold(&self, action: impl FnOnce()) {
        // SAFETY: the mutex is initialised, has not moved since, and this thread does not hold it.
        unsafe { libc::pthread_mutex_lock(self.0.get()) };
        action();
        // SAFETY: this thread holds it.
        unsafe { libc::pthread_mutex_unlock(self.0.get()) };
    }
}

impl Drop for Lock {
    fn drop(&mut self) {
        // SAFETY: no thread holds the lock, because a holder would have a reference to it.
        unsafe { libc::pthread_mutex_destroy(self.0.get()) };
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicU64, Ordering};

    use super::*;

    #[test]
    fn only_one_thread_holds_a_lock() {
        let (locks, counter) = (Locks::new(2), AtomicU64::new(0));
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    for _ in 0..10_000 {
                        // Not atomic: without the lock, some increments would be lost.
                        locks.get(1).hold(|| {
                            let count = counter.load(Ordering::Relaxed);
                            std::hint::spin_loop();
                            counter.store(count + 1, Ordering::Relaxed);
                        });
                    }
                });
            }
        });
        assert_eq!((counter.into_inner(), locks.len()), (40_000, 2));
    }
}
