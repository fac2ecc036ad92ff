//! The one dialer: resolve, filter addresses, pin, no surprise redirects.

#![forbid(unsafe_code)]
