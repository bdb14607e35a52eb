//! The broker's allocator, counting what it hands out while somebody asks.

use std::alloc::{GlobalAlloc, Layout};
use std::fmt;
use std::sync::atomic::{AtomicBool, AtomicIsize, Ordering::Relaxed};

use tikv_jemallocator::{Jemalloc, usable_size};

struct Counting;

#[global_allocator]
static ALLOCATOR: Counting = Counting;

static IS_COUNTING: AtomicBool = AtomicBool::new(false);
static LIVE: AtomicIsize = AtomicIsize::new(0);
static PEAK: AtomicIsize = AtomicIsize::new(0);
static BLOCKS: AtomicIsize = AtomicIsize::new(0);

/// What some work did to the memory. Sizes are in bytes, as the allocator rounds them.
pub struct Usage {
    /// What it took and did not give back; negative where it gave back more.
    pub kept: isize,
    /// The most that it had taken at a time.
    pub peak: isize,
    /// How many blocks it asked for, resized ones too.
    pub blocks: isize,
}

impl fmt::Display for Usage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [kept, peak] = [self.kept, self.peak].map(|bytes| bytes as f64 / 1e6);
        write!(f, "{kept:.1} MB (at most {peak:.1}, {} blocks)", self.blocks)
    }
}

/// Counts what all threads take and give back during the work. One at a time.
pub fn counted<T>(work: impl FnOnce() -> T) -> (T, Usage) {
    [&LIVE, &PEAK, &BLOCKS].into_iter().for_each(|count| count.store(0, Relaxed));
    IS_COUNTING.store(true, Relaxed);
    let result = work();
    IS_COUNTING.store(false, Relaxed);
    let usage = Usage { kept: LIVE.load(Relaxed), peak: PEAK.load(Relaxed), blocks: BLOCKS.load(Relaxed) };
    (result, usage)
}

/// What the block really takes.
///
/// # Safety
///
/// The block is one of this allocator's that is in use.
unsafe fn size(block: *mut u8) -> isize {
    unsafe { usable_size(block) as isize }
}

fn count_taken(block: *mut u8) {
    if IS_COUNTING.load(Relaxed) && !block.is_null() {
        // SAFETY: the block has just come from this allocator.
        let bytes = unsafe { size(block) };
        let live = LIVE.fetch_add(bytes, Relaxed) + bytes;
        PEAK.fetch_max(live, Relaxed);
        BLOCKS.fetch_add(1, Relaxed);
    }
}

fn count_given_back(bytes: isize) {
    if IS_COUNTING.load(Relaxed) {
        LIVE.fetch_sub(bytes, Relaxed);
    }
}

// SAFETY: everything is passed on to the broker's allocator as it came.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        // SAFETY: the caller keeps the contract.
        let block = unsafe { Jemalloc.alloc(layout) };
        count_taken(block);
        block
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        // SAFETY: the caller keeps the contract.
        let block = unsafe { Jemalloc.alloc_zeroed(layout) };
        count_taken(block);
        block
    }

    unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
        // SAFETY: the caller keeps the contract.
        unsafe {
            count_given_back(size(block));
            Jemalloc.dealloc(block, layout);
        }
    }

    unsafe fn realloc(&self, block: *mut u8, layout: Layout, bytes: usize) -> *mut u8 {
        // SAFETY: the caller keeps the contract.
        let (before, block) = unsafe { (size(block), Jemalloc.realloc(block, layout, bytes)) };
        // Old and new block live side by side while one is copied to the other.
        count_taken(block);
        count_given_back(before);
        block
    }
}
