//! An OpenAPI document to operations, tool definitions and request plans.

#![forbid(unsafe_code)]
