//! What a call names, found in the catalogue: a tool or a prompt by its name, a resource by its URI, a template by its text.
//!
//! Nothing is admitted here. What is not found goes on under the name that was asked for, so that the refusal of it is written
//! down like any other.

use catalog::{NotAdmitted, Tool};
use model::{Aim, Arguments, Refusal, RefusalCode};
use wire::{Completion, Reference, Surface};

use crate::house::Gateway;
use crate::mount::Mount;

/// What a call wants, in the words of its caller.
#[derive(Debug, Clone, PartialEq)]
pub enum Wanted {
    /// To have a tool called.
    Tool {
        /// Its name, as asked.
        name: String,
        /// The arguments.
        arguments: Arguments,
    },
    /// To get a prompt.
    Prompt {
        /// Its name, as asked.
        name: String,
        /// The arguments.
        arguments: Arguments,
    },
    /// To read a resource.
    Resource {
        /// Its URI, as asked.
        uri: String,
    },
    /// To be told when a resource changes.
    Follow {
        /// Its URI, as asked.
        uri: String,
    },
    /// To have an argument completed.
    Completion(wire::Completion),
}

impl Wanted {
    /// The method by which it is asked for.
    #[must_use]
    pub const fn method(&self) -> &'static str {
        match self {
            Self::Tool { .. } => "tools/call",
            Self::Prompt { .. } => "prompts/get",
            Self::Resource { .. } => "resources/read",
            Self::Follow { .. } => "resources/subscribe",
            Self::Completion(_) => "completion/complete",
        }
    }

    /// What it names, as asked.
    #[must_use]
    pub fn named(&self) -> &str {
        match self {
            Self::Tool { name, .. } | Self::Prompt { name, .. } => name,
            Self::Resource { uri } | Self::Follow { uri } => uri,
            Self::Completion(completion) => match &completion.of {
                wire::Reference::Prompt(name) | wire::Reference::Template(name) => name,
            },
        }
    }
}

/// What a call names.
pub(crate) struct Named {
    /// The public name; what was asked, where nothing has it.
    pub(crate) name: String,
    /// What it may be, to be what is wanted.
    pub(crate) surfaces: &'static [Surface],
    pub(crate) arguments: Arguments,
    pub(crate) aim: Aim,
    /// Why nothing can be meant.
    pub(crate) refused: Option<Refusal>,
}

/// What can be read by a URI.
const READABLE: &[Surface] = &[Surface::Resources, Surface::Templates];

impl Gateway {
    /// Finds what a call names, as far as `mount` shows it.
    pub(crate) fn find(&self, wanted: Wanted, mount: &Mount) -> Named {
        match wanted {
            Wanted::Tool { name, arguments } => Named {
                name: mount.public(&name).into_owned(),
                surfaces: &[Surface::Tools],
                arguments,
                aim: Aim::Use,
                refused: None,
            },
            Wanted::Prompt { name, arguments } => Named {
                name: mount.public(&name).into_owned(),
                surfaces: &[Surface::Prompts],
                arguments,
                aim: Aim::Use,
                refused: None,
            },
            Wanted::Resource { uri } => self.of_resource(uri, Aim::Use, mount),
            Wanted::Follow { uri } => self.of_resource(uri, Aim::Follow, mount),
            Wanted::Completion(completion) => self.of_completion(completion, mount),
        }
    }

    fn of_resource(&self, uri: String, aim: Aim, mount: &Mount) -> Named {
        match self.catalog.reads(&uri, |tool| mount.shows(tool)) {
            Ok((name, arguments)) => Named {
                name: name.to_string(),
                surfaces: READABLE,
                arguments,
                aim,
                refused: None,
            },
            Err(fault) => Named {
                name: uri,
                surfaces: READABLE,
                arguments: Arguments::none(),
                aim,
                refused: Some(refusal(&fault)),
            },
        }
    }

    /// What somebody at a terminal means by one word: a prompt by its name, a resource by its URI, a tool by everything else.
    #[must_use]
    pub fn meant(&self, word: &str, arguments: Arguments) -> Wanted {
        let is_prompt = |tool: &Tool| tool.surface() == Surface::Prompts && tool.name().as_str() == word;
        let name = word.to_owned();
        if self.catalog.tools().any(|tool| is_prompt(tool)) {
            Wanted::Prompt { name, arguments }
        } else if word.contains(':') {
            Wanted::Resource { uri: name }
        } else {
            Wanted::Tool { name, arguments }
        }
    }

    fn of_completion(&self, completion: Completion, mount: &Mount) -> Named {
        let Completion {
            of,
            argument,
            value,
            others,
        } = completion;
        let (name, surfaces, refused): (_, &'static [Surface], _) = match of {
            Reference::Prompt(name) => (mount.public(&name).into_owned(), &[Surface::Prompts], None),
            Reference::Template(text) => match self.catalog.template(&text, |tool| mount.shows(tool)) {
                Ok(name) => (name.to_string(), &[Surface::Templates], None),
                Err(fault) => (text, &[Surface::Templates], Some(refusal(&fault))),
            },
        };
        Named {
            name,
            surfaces,
            arguments: others,
            aim: Aim::Complete { argument, value },
            refused,
        }
    }
}

/// Why a name stands for nothing, as the road writes it down.
pub(crate) fn refusal(fault: &NotAdmitted) -> Refusal {
    let code = match fault {
        NotAdmitted::Unknown => RefusalCode::UnknownTool,
        NotAdmitted::Held { .. } => RefusalCode::Held,
    };
    Refusal::new(code, fault.to_string())
}
