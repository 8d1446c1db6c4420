//! Holds every manifest to the table of layers.

use std::collections::BTreeSet;
use std::process::Command;

use serde::Deserialize;

use crate::command::StepError;
use crate::layers_table::{DEV_OUTSIDE, LAYERS, Layer};
use crate::workspace;

/// What `cargo metadata --no-deps` says, as far as it matters here.
#[derive(Deserialize)]
struct Metadata {
    packages: Vec<Package>,
}

#[derive(Deserialize)]
struct Package {
    name: String,
    dependencies: Vec<Dependency>,
}

/// `name` is the real name; a rename in the manifest does not change it. Optional, build and per-target
/// dependencies are listed like all others.
#[derive(Deserialize)]
struct Dependency {
    name: String,
    kind: Option<String>,
}

/// Where this workspace breaks the rules; nothing when it keeps them.
pub(crate) fn findings_of_workspace() -> Result<Vec<String>, StepError> {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let output = Command::new(cargo)
        .current_dir(workspace::root())
        .args(["metadata", "--no-deps", "--offline", "--format-version", "1"])
        .output()
        .map_err(|source| StepError::Start { program: "cargo", source })?;
    if !output.status.success() {
        return Err(StepError::Exit(output.status.code().unwrap_or(1)));
    }
    let metadata = serde_json::from_slice(&output.stdout).map_err(StepError::Metadata)?;
    Ok(findings(&metadata, LAYERS))
}

fn findings(metadata: &Metadata, layers: &[Layer]) -> Vec<String> {
    let ours: BTreeSet<&str> = metadata.packages.iter().map(|package| package.name.as_str()).collect();
    let mut findings = Vec::new();
    for package in &metadata.packages {
        match layers.iter().find(|layer| layer.name == package.name) {
            Some(layer) => findings.extend(forbidden(package, layer, &ours)),
            None => findings.push(format!("{}: has no row in the table of layers", package.name)),
        }
    }
    for layer in layers.iter().filter(|layer| !ours.contains(layer.name)) {
        findings.push(format!("{}: has a row in the table of layers and no crate", layer.name));
    }
    findings
}

fn forbidden(package: &Package, layer: &Layer, ours: &BTreeSet<&str>) -> Vec<String> {
    let mut findings = Vec::new();
    for Dependency { name, kind } in &package.dependencies {
        let dev = kind.as_deref() == Some("dev");
        let (allowed, whose) = if ours.contains(name.as_str()) {
            (layer.ours.admits(name), "our crate")
        } else {
            let dev_only = dev && DEV_OUTSIDE.contains(&name.as_str());
            (dev_only || layer.outside.admits(name), "the outside crate")
        };
        if !allowed {
            let kind = kind.as_deref().map(|kind| format!("{kind}-")).unwrap_or_default();
            findings.push(format!("{}: {kind}depends on {whose} {name}", package.name));
        }
    }
    findings
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::layers_table::Allowed::{Any, Only};

    const SMALL: &[Layer] = &[
        Layer { name: "inner", ours: Only(&[]), outside: Only(&["thiserror"]) },
        Layer { name: "outer", ours: Only(&["inner"]), outside: Only(&["thiserror"]) },
        Layer { name: "edge", ours: Any, outside: Any },
    ];

    /// A workspace of the three crates above, with these dependencies planted into `inner` and this further
    /// package beside them.
    fn planted(inner: &str, further: &str) -> Vec<String> {
        let json = format!(
            r#"{{"packages": [
                {{"name": "inner", "dependencies": [{inner}]}},
                {{"name": "outer", "dependencies": [
                    {{"name": "inner", "kind": null, "path": "/w/inner"}},
                    {{"name": "inner", "kind": "dev", "path": "/w/inner"}},
                    {{"name": "thiserror", "kind": null}},
                    {{"name": "proptest", "kind": "dev"}}
                ]}},
                {{"name": "edge", "dependencies": [
                    {{"name": "outer", "kind": null, "path": "/w/outer"}}, {{"name": "tokio", "kind": null}}
                ]}}{further}
            ]}}"#
        );
        findings(&serde_json::from_str(&json).unwrap(), SMALL)
    }

    #[test]
    fn this_workspace_keeps_the_rules() {
        assert_eq!(findings_of_workspace().unwrap(), Vec::<String>::new());
    }

    #[test]
    fn a_clean_workspace_has_no_findings() {
        assert_eq!(planted(r#"{"name": "thiserror", "kind": null}"#, ""), Vec::<String>::new());
    }

    #[test]
    fn every_kind_of_violation_is_one_finding() {
        for (violation, finding) in [
            (r#"{"name": "outer", "kind": null, "path": "/w/outer"}"#, "inner: depends on our crate outer"),
            (r#"{"name": "tokio", "kind": null}"#, "inner: depends on the outside crate tokio"),
            (
                r#"{"name": "tokio", "kind": null, "optional": true}"#,
                "inner: depends on the outside crate tokio",
            ),
            (
                r#"{"name": "tokio", "kind": null, "rename": "thiserror"}"#,
                "inner: depends on the outside crate tokio",
            ),
            (
                r#"{"name": "tokio", "kind": null, "target": "cfg(windows)"}"#,
                "inner: depends on the outside crate tokio",
            ),
            // Cargo accepts this cycle.
            (
                r#"{"name": "outer", "kind": "dev", "path": "/w/outer"}"#,
                "inner: dev-depends on our crate outer",
            ),
            (
                r#"{"name": "inner", "kind": "dev", "path": "/w/inner"}"#,
                "inner: dev-depends on our crate inner",
            ),
            (r#"{"name": "cc", "kind": "build"}"#, "inner: build-depends on the outside crate cc"),
            // Allowed in tests only.
            (r#"{"name": "proptest", "kind": null}"#, "inner: depends on the outside crate proptest"),
            (r#"{"name": "wiremock", "kind": "dev"}"#, "inner: dev-depends on the outside crate wiremock"),
        ] {
            assert_eq!(planted(violation, ""), vec![finding.to_owned()], "{violation}");
        }
    }

    #[test]
    fn a_crate_without_a_row_is_a_finding() {
        assert_eq!(
            planted("", r#", {"name": "newcomer", "dependencies": []}"#),
            vec!["newcomer: has no row in the table of layers".to_owned()]
        );
    }

    #[test]
    fn a_row_without_a_crate_is_a_finding() {
        let metadata = serde_json::from_str(r#"{"packages": []}"#).unwrap();
        assert_eq!(findings(&metadata, SMALL).len(), 3);
    }
}
