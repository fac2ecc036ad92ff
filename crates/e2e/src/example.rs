//! The worked example: its service, running, and a folder with its configuration.

use std::collections::BTreeSet;

use tempfile::TempDir;

use crate::house::House;

/// The credential of the gate at the service.
pub const CREDENTIAL: &str = "service-credential-of-the-example";

/// The service of the worked example and a house in front of it.
pub struct Example {
    pub service: invoices::Running,
    pub house: House,
    pub _database: TempDir,
}

impl Example {
    pub async fn start() -> Self {
        let database = TempDir::new().unwrap();
        let options = invoices::Options::new(database.path().join("invoices.db"), CREDENTIAL);
        let service = invoices::start(options).await.unwrap();
        let house = House::invoices(&service, CREDENTIAL);
        Self {
            service,
            house,
            _database: database,
        }
    }
}

/// Every file and folder of a house, for tests that say that nothing was written.
pub fn everything_in(house: &House) -> BTreeSet<String> {
    fn walk(folder: &std::path::Path, found: &mut BTreeSet<String>) {
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            found.insert(path.display().to_string());
            if path.is_dir() {
                walk(&path, found);
            }
        }
    }
    let mut found = BTreeSet::new();
    walk(house.folder(), &mut found);
    found
}
