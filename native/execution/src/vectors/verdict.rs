//! Results and fork names of the public tests.

use crate::evm::block_environment::Fork;

/// Result of one case: name, fork with indexes, whether the case passed (None: skipped), expected and actual result.
pub type Verdict = (String, String, Option<bool>, String);

/// Return the fork for a fork name of the public tests; None if Ophion does not know the name.
pub fn fork_named(name: &str) -> Option<Fork> {
    let ours = match name {
        "Frontier" => "frontier",
        "Homestead" => "homestead",
        "EIP150" => "tangerine",
        "EIP158" => "spurious",
        "Byzantium" => "byzantium",
        "Constantinople" => "constantinople",
        "ConstantinopleFix" => "petersburg",
        "Istanbul" => "istanbul",
        "Berlin" => "berlin",
        "London" => "london",
        "Merge" | "Paris" => "paris",
        "Shanghai" => "shanghai",
        "Cancun" => "cancun",
        "Prague" => "prague",
        "Osaka" => "osaka",
        _ => return None,
    };
    Fork::parse(ours).ok()
}
