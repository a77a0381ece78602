//! Whether this kernel can hold programs to their paths. It confines nothing itself.

use landlock::{ABI, Access, AccessFs, CompatLevel, Compatible, Ruleset, RulesetAttr};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Landlock {
    Present,
    Missing,
}

impl Landlock {
    /// Asks the kernel for the oldest rules there are.
    pub fn here() -> Self {
        let rules = Ruleset::default()
            .set_compatibility(CompatLevel::HardRequirement)
            .handle_access(AccessFs::from_all(ABI::V1))
            .and_then(Ruleset::create);
        if rules.is_ok() { Self::Present } else { Self::Missing }
    }
}
