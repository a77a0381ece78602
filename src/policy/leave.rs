//! What a tool says about one call of it before it runs: free, to be confirmed, or never.
//! Data only; whether somebody confirms is for whoever runs the call.

/// Whether an agent may make a call that fits the tool's schema.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Leave {
    Free,
    /// Somebody has to confirm it, unless an allowance of the agent covers it; which answers there are
    /// follows from what the tool says that the call is about.
    Confirm,
    /// The agent's level forbids it, and nothing gives it back.
    Never,
}
