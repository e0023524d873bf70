//! At most two chains of real parts at once, over all threads of all test programs: more would only time each other out.

use std::cell::RefCell;
use std::fs::{self, File};
use std::rc::{Rc, Weak};
use std::sync::{Condvar, Mutex};

use super::template::place;

/// Chains at once.
const SLOTS: usize = 2;

static FREE: Mutex<[bool; SLOTS]> = Mutex::new([true; SLOTS]);
static FREED: Condvar = Condvar::new();

thread_local! {
    static MINE: RefCell<Weak<Slot>> = const { RefCell::new(Weak::new()) };
}

/// The right to run chains. A thread that has it already shares it, so that a test with two repositories can't lock
/// itself out.
pub struct Slot {
    number: usize,
    /// Locked as long as it is open: other test programs wait for it.
    _file: File,
}

impl Slot {
    /// Waits for a slot.
    pub fn take() -> Rc<Self> {
        if let Some(slot) = MINE.with_borrow(Weak::upgrade) {
            return slot;
        }
        let number = {
            let free = FREE.lock().unwrap();
            let mut free = FREED.wait_while(free, |free| !free.contains(&true)).unwrap();
            let number = free.iter().position(|free| *free).unwrap();
            free[number] = false;
            number
        };
        let path = place().join(format!("slot-{number}"));
        fs::create_dir_all(place()).unwrap();
        let file = File::create(&path).unwrap();
        file.lock().unwrap();
        let slot = Rc::new(Self { number, _file: file });
        MINE.set(Rc::downgrade(&slot));
        slot
    }
}

impl Drop for Slot {
    fn drop(&mut self) {
        // A test that failed must not take the others with it.
        FREE.lock().unwrap_or_else(|poisoned| poisoned.into_inner())[self.number] = true;
        FREED.notify_one();
    }
}
