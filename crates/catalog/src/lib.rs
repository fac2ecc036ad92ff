//! The reviewed tools and whether their live definition is the approved one.

#![forbid(unsafe_code)]
