//! Pieces of work on a bounded number of threads.

use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Does pieces 0 to `count` on `threads` threads, or on as many as there are cores. Each thread
/// takes the next piece when it is done with one, and keeps what it likes in between. Results come
/// in the order of the pieces.
pub fn run<Kept: Default, Done: Send>(
    count: usize,
    threads: Option<usize>,
    work: impl Fn(usize, &mut Kept) -> Done + Sync,
) -> Vec<Done> {
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let threads = threads.unwrap_or(cores).clamp(1, count.max(1));
    let next = AtomicUsize::new(0);
    let results: Mutex<Vec<(usize, Done)>> = Mutex::new(Vec::new());
    std::thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(|| {
                let mut kept = Kept::default();
                loop {
                    let at = next.fetch_add(1, Ordering::Relaxed);
                    if at >= count {
                        break;
                    }
                    let result = work(at, &mut kept);
                    results.lock().expect("no work panics").push((at, result));
                }
            });
        }
    });
    let mut results = results.into_inner().expect("no work panics");
    results.sort_by_key(|(at, _)| *at);
    results.into_iter().map(|(_, result)| result).collect()
}
