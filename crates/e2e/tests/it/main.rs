//! The built binary against real peers on loopback: what Tollhouse promises, driven through its doors.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::string_slice,
    reason = "tests"
)]

mod answers;
mod approvals;
mod asks;
mod audit;
mod batches;
mod bodies;
mod bounded;
mod budgets;
mod calls;
mod canary;
mod cancel;
mod changes;
mod check;
mod children;
mod cli;
mod commands;
mod consent;
mod corpus;
mod credentials;
mod crowd;
mod demo;
mod document;
mod documents;
mod drain;
mod egress;
mod eras;
mod follows;
mod golden;
mod guide;
mod headers;
mod identity;
mod init;
mod keys;
mod killed;
mod leak;
mod ledger;
mod limits;
mod lines;
mod lists;
mod logs;
mod names;
mod offers;
mod origins;
mod owners;
mod pages;
mod parks;
mod posts;
mod probe;
mod progress;
mod readiness;
mod readiness_evidence;
mod readiness_forms;
mod results;
mod road;
mod servers;
mod sessions;
mod started;
mod storage;
mod traps;
mod work;
