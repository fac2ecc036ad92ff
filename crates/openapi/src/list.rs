//! A list of tools within a budget: what a model reads before it has done anything.
//!
//! Answers are described less deeply first, then inputs lose optional fields; nothing is dropped without a note, and
//! what does not fit in the end is said. Each try halves one limit, so that the work stays within a few times one list.

use serde_json::json;

use crate::blocker::Blocker;
use crate::document::Document;
use crate::length::json_length;
use crate::operation::OperationRef;
use crate::tool::{Generated, ToolOptions};

/// Below this an output schema is no longer made smaller.
const OUTPUT_BYTES_MIN: usize = 256;
/// Below this an input schema is no longer made smaller.
const INPUT_BYTES_MIN: usize = 2 << 10;

/// The tools of a list, and the limits that were used to make it fit.
#[derive(Debug)]
pub struct ToolList {
    /// Each operation's tool, or what blocks it, in the order that was asked for.
    pub tools: Vec<Result<Generated, Vec<Blocker>>>,
    /// The length of the list, in bytes of JSON: title, description and both schemas of every tool.
    pub bytes: usize,
    /// Whether that is within the budget. Where it is not, the list has to be shorter.
    pub fits: bool,
    /// The limits of one tool that were used.
    pub options: ToolOptions,
}

/// Makes the list.
pub(crate) fn within(
    document: &Document,
    operations: &[OperationRef],
    options: &ToolOptions,
    bytes_max: usize,
) -> ToolList {
    let mut options = options.clone();
    options.input_bytes_max = options.input_bytes_max.min(options.schema_bytes_max);
    loop {
        let tools: Vec<Result<Generated, Vec<Blocker>>> = operations
            .iter()
            .map(|operation| document.tool(operation, &options))
            .collect();
        let bytes = 2 + tools.iter().flatten().map(length).sum::<usize>();
        let next = (options.output_bytes_max / 2, options.input_bytes_max / 2);
        let fits = bytes <= bytes_max;
        if !fits && next.0 >= OUTPUT_BYTES_MIN {
            options.output_bytes_max = next.0;
        } else if !fits && next.1 >= INPUT_BYTES_MIN {
            options.input_bytes_max = next.1;
        } else {
            return ToolList {
                tools,
                bytes,
                fits,
                options,
            };
        }
    }
}

/// The length of one tool in a list, with the longest name that it may have.
fn length(tool: &Generated) -> usize {
    let words = json!({"name": "", "title": tool.title, "description": tool.description});
    json_length(&words) + crate::tool_name::TOOL_NAME_BYTES_MAX + tool.schema_bytes + 32
}
