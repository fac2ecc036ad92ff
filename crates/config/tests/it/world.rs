//! The files and variables that the fixtures of these tests name.

use config::PaperWorld;

/// Stands in every credential. Whatever shows it has leaked.
pub(crate) const CANARY: &str = "canary-7f3a";

pub(crate) fn world() -> PaperWorld {
    let mut world = PaperWorld {
        now: "2026-12-01T00:00:00Z".parse().unwrap(),
        ..PaperWorld::default()
    }
    .with_file("policy/b.cedar", "// b")
    .with_file("policy/a.cedar", "// a")
    .with_file("policy/README.md", "not a rule")
    .with_file("billing.yaml", "openapi: 3.1.0")
    .with_file("billing.overlay.yaml", "overlay: 1.0.0")
    .with_file("archive.json", "{}")
    .with_file(
        "ca.pem",
        "-----BEGIN CERTIFICATE-----\nMIIB\n-----END CERTIFICATE-----\n",
    )
    .with_file(
        "key.pem",
        format!("-----BEGIN PRIVATE KEY-----\n{CANARY}\n-----END PRIVATE KEY-----\n"),
    )
    .with_file("keys.json", "{\"keys\":[]}")
    .with_file(
        "owners.json",
        "{\"Invoice\":{\"inv-1\":\"north\",\"inv-2\":\"south\"}}",
    )
    .with_file("password", format!("{CANARY}-password\n"))
    .with_file("empty", "\n")
    .with_file("two-lines", format!("{CANARY}\nmore\n"))
    .with_file("binary", vec![0xff, 0xfe])
    .with_variable("BILLING_TOKEN", format!("{CANARY}-token"))
    .with_variable("CRM_KEY", format!("{CANARY}-key"))
    .with_variable("ARCHIVE_URL", "https://archive.example.com")
    .with_variable(
        "DIRECTORY",
        format!("postgres://reader:{CANARY}@directory.internal/directory"),
    )
    .with_variable("EMPTY", "")
    .with_variable("SPACE", format!(" {CANARY}"))
    .with_variable("SPOKEN", format!("{CANARY} and more"));
    world.variables.insert("NOT_UNICODE".to_owned(), None);
    world
}
