//! What tokio counts per process and not per runtime.

/// As many as tokio's lists of tasks have shards, and more.
const ALIGNMENT: u64 = 64;

/// Lets the numbers of tasks begin at the same place for every run. A runtime that is dropped, as a
/// crash drops one, ends its tasks in an order that depends on their numbers, and those are counted
/// through the whole process: a run in the middle of a sweep would differ from one alone.
pub fn align_task_ids() {
    let runtime = tokio::runtime::Builder::new_current_thread().build();
    let runtime = runtime.expect("a runtime without drivers needs nothing of the machine");
    runtime.block_on(async {
        loop {
            let id = tokio::spawn(async {}).id().to_string();
            let id: u64 = id.parse().expect("a task is shown by its number");
            if id.is_multiple_of(ALIGNMENT) {
                return;
            }
        }
    });
}
