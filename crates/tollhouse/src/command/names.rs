//! `tollhouse names`: the name of every operation, and the file that keeps a name from coming to mean another one.

use openapi::NameSource;
use serde_json::json;

use crate::cli::Names as Args;
use crate::failure::Failure;
use crate::house::Reviewed;
use crate::house::names;
use crate::log;
use crate::print::{self, say};
use crate::whole;

/// One operation and its name.
struct Row {
    name: String,
    upstream: String,
    operation: String,
    source: &'static str,
}

pub(crate) async fn names(args: Args) -> Result<(), Failure> {
    log::start_quiet();
    let mut reviewed = super::review(&args.path).await?;
    let rows = rows(&reviewed)?;
    if args.write {
        return write(&mut reviewed, &rows);
    }
    if args.format.json {
        let names: Vec<_> = rows
            .iter()
            .map(|row| {
                json!({
                    "name": row.name, "upstream": row.upstream, "operation": row.operation, "source": row.source,
                })
            })
            .collect();
        print::json(&json!({ "names": names }));
        return Ok(());
    }
    let cells = rows
        .iter()
        .map(|row| vec![row.name.clone(), row.operation.clone(), row.source.to_owned()])
        .collect();
    print::table(&["name", "operation", "from"], cells);
    Ok(())
}

/// Every enabled tool by its name in the configuration, and every other operation by the name that it would get.
fn rows(reviewed: &Reviewed) -> Result<Vec<Row>, Failure> {
    let mut rows: Vec<Row> = reviewed
        .catalog
        .tools()
        .map(|tool| Row {
            name: tool.name().to_string(),
            upstream: tool.upstream().to_string(),
            operation: tool.origin().to_owned(),
            source: "configuration",
        })
        .collect();
    for upstream in &reviewed.settings.upstreams {
        let Some(document) = reviewed.documents.get(&upstream.name) else {
            continue;
        };
        let named = reviewed
            .names
            .of(upstream, document)
            .map_err(|fault| Failure::Input(fault.to_string()))?;
        for naming in named {
            let is_enabled = rows
                .iter()
                .any(|row| row.upstream == upstream.name.as_str() && row.operation == naming.operation);
            if !is_enabled {
                rows.push(Row {
                    name: naming.name,
                    upstream: upstream.name.to_string(),
                    operation: naming.operation,
                    source: match naming.source {
                        NameSource::Lock => "lock",
                        NameSource::OperationId => "operationId",
                        NameSource::OperationIdChanged => "operationId, changed",
                        NameSource::MethodAndPath => "method and path",
                    },
                });
            }
        }
    }
    Ok(rows)
}

/// Adds what is not in the file yet. Nothing that is in it is changed or taken out.
fn write(reviewed: &mut Reviewed, rows: &[Row]) -> Result<(), Failure> {
    let before = reviewed.names.len();
    let upstreams: Vec<_> = reviewed
        .settings
        .upstreams
        .iter()
        .map(|upstream| upstream.name.clone())
        .collect();
    for row in rows {
        let Some(upstream) = upstreams.iter().find(|name| name.as_str() == row.upstream) else {
            continue;
        };
        // A tool of the configuration keeps its name also where its operation has another one.
        if row.source == "configuration" || !reviewed.names.names(upstream, &row.operation) {
            reviewed.names.add(&row.name, upstream, &row.operation);
        }
    }
    let path = names::path(&reviewed.settings);
    // Whole or not at all: half a file would free the names that are not in it.
    whole::write(&path, &reviewed.names.to_string())?;
    let added = reviewed.names.len().saturating_sub(before);
    say!(
        "{}: {} added, {} in all",
        path.display(),
        print::counted(added, "name", "names"),
        reviewed.names.len()
    );
    Ok(())
}
