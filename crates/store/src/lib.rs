//! SQL behind one door: SQLite by default, PostgreSQL when scaled out.

#![forbid(unsafe_code)]
