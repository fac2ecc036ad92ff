//! One value of a database, in and out: what comes as text becomes what the database compares it with, and what the
//! database gives becomes a fact. Asking is in `facts`.

use model::FactValue;
use sqlx::postgres::{PgArguments, PgRow, PgTypeInfo, PgTypeKind};
use sqlx::sqlite::SqliteRow;
use sqlx::{Arguments as _, Postgres, Row as _, TypeInfo as _, ValueRef as _};

use crate::facts::{FactFault, fault};

/// What a query for a fact found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum FactRow {
    /// No row.
    None,
    /// One row with a value.
    One(FactValue),
    /// One row, and its value is NULL: unknown.
    Null,
    /// More rows than one. Which of them would be true is a guess, so that none is given.
    Many,
}

// === impl FactRow ===

impl FactRow {
    /// The fact as a text: an id of an owner. A whole number is written in digits. `None` where it is not known.
    ///
    /// # Errors
    /// [`FactFault::Many`]; [`FactFault::Type`] where it is a truth value.
    pub fn text(self) -> Result<Option<String>, FactFault> {
        match self {
            Self::None | Self::Null => Ok(None),
            Self::One(FactValue::Text(text)) => Ok(Some(text)),
            Self::One(FactValue::Integer(number)) => Ok(Some(number.to_string())),
            Self::One(FactValue::Truth(_)) => Err(mismatch("truth value", "a text")),
            Self::Many => Err(FactFault::Many),
        }
    }

    /// The fact as yes or no. SQLite has no truth values; its 1 and 0 are read as such. `None` where it is not known.
    ///
    /// # Errors
    /// [`FactFault::Many`]; [`FactFault::Type`] where it is a text or another number.
    pub fn truth(self) -> Result<Option<bool>, FactFault> {
        match self {
            Self::None | Self::Null => Ok(None),
            Self::One(FactValue::Truth(truth)) => Ok(Some(truth)),
            Self::One(FactValue::Integer(0)) => Ok(Some(false)),
            Self::One(FactValue::Integer(1)) => Ok(Some(true)),
            Self::One(FactValue::Integer(_)) => Err(mismatch("number", "a truth value")),
            Self::One(FactValue::Text(_)) => Err(mismatch("text", "a truth value")),
            Self::Many => Err(FactFault::Many),
        }
    }

    /// The fact as a whole number. `None` where it is not known.
    ///
    /// # Errors
    /// [`FactFault::Many`]; [`FactFault::Type`] where it is something else.
    pub fn integer(self) -> Result<Option<i64>, FactFault> {
        match self {
            Self::None | Self::Null => Ok(None),
            Self::One(FactValue::Integer(number)) => Ok(Some(number)),
            Self::One(FactValue::Truth(_)) => Err(mismatch("truth value", "a whole number")),
            Self::One(FactValue::Text(_)) => Err(mismatch("text", "a whole number")),
            Self::Many => Err(FactFault::Many),
        }
    }
}

fn mismatch(found: &str, wanted: &'static str) -> FactFault {
    FactFault::Type {
        found: found.to_owned(),
        wanted,
    }
}

// === out of the database, and into it ===

pub(crate) fn one_column(columns: usize) -> Result<(), FactFault> {
    if columns == 1 {
        Ok(())
    } else {
        Err(FactFault::Columns(columns))
    }
}

pub(crate) fn sqlite_value(row: &SqliteRow) -> Result<FactRow, FactFault> {
    one_column(row.len())?;
    let value = row.try_get_raw(0).map_err(fault)?;
    if value.is_null() {
        return Ok(FactRow::Null);
    }
    let kind = value.type_info().name().to_owned();
    match kind.as_str() {
        "INTEGER" => Ok(FactValue::Integer(row.try_get_unchecked(0).map_err(fault)?)),
        "TEXT" => Ok(FactValue::Text(row.try_get_unchecked(0).map_err(fault)?)),
        _ => Err(FactFault::Type {
            found: kind,
            wanted: "a text or a whole number",
        }),
    }
    .map(FactRow::One)
}

pub(crate) fn postgres_value(row: &PgRow) -> Result<FactRow, FactFault> {
    one_column(row.len())?;
    let value = row.try_get_raw(0).map_err(fault)?;
    if value.is_null() {
        return Ok(FactRow::Null);
    }
    let kind = value.type_info().into_owned();
    let decode = |error: sqlx::error::BoxDynError| FactFault::Query(error.to_string());
    match (kind.name(), kind.kind()) {
        ("BOOL", _) => Ok(FactValue::Truth(row.try_get(0).map_err(fault)?)),
        ("INT2", _) => Ok(FactValue::Integer(i64::from(
            row.try_get::<i16, _>(0).map_err(fault)?,
        ))),
        ("INT4", _) => Ok(FactValue::Integer(i64::from(
            row.try_get::<i32, _>(0).map_err(fault)?,
        ))),
        ("INT8", _) => Ok(FactValue::Integer(row.try_get(0).map_err(fault)?)),
        ("TEXT" | "VARCHAR" | "CHAR" | "NAME" | "UNKNOWN", _) | (_, PgTypeKind::Enum(_)) => {
            Ok(FactValue::Text(value.as_str().map_err(decode)?.to_owned()))
        }
        ("UUID", _) => {
            let bytes = value.as_bytes().map_err(decode)?;
            let id = uuid::Uuid::from_slice(bytes).map_err(|error| decode(error.into()))?;
            Ok(FactValue::Text(id.to_string()))
        }
        (name, _) => Err(FactFault::Type {
            found: name.to_owned(),
            wanted: "a text, a whole number, a UUID or a truth value",
        }),
    }
    .map(FactRow::One)
}

/// How a text becomes a value of the type that PostgreSQL wants. It takes values in binary, each type in its own form.
#[derive(Clone, Copy)]
pub(crate) enum Bind {
    Text,
    Int2,
    Int4,
    Int8,
    Bool,
    Uuid,
}

impl Bind {
    pub(crate) fn of(kind: &PgTypeInfo, placeholder: usize) -> Result<Self, FactFault> {
        match (kind.name(), kind.kind()) {
            ("TEXT" | "VARCHAR" | "CHAR" | "NAME" | "UNKNOWN", _) | (_, PgTypeKind::Enum(_)) => {
                Ok(Self::Text)
            }
            ("INT2", _) => Ok(Self::Int2),
            ("INT4", _) => Ok(Self::Int4),
            ("INT8", _) => Ok(Self::Int8),
            ("BOOL", _) => Ok(Self::Bool),
            ("UUID", _) => Ok(Self::Uuid),
            (name, _) => Err(FactFault::BindType {
                placeholder,
                wanted: name.to_owned(),
            }),
        }
    }

    pub(crate) fn add(
        self,
        text: &str,
        arguments: &mut PgArguments,
        placeholder: usize,
    ) -> Result<(), FactFault> {
        let refused = |wanted: &str| FactFault::Bind {
            placeholder,
            wanted: wanted.to_owned(),
        };
        match self {
            Self::Text => arguments.add(text),
            Self::Int2 => arguments.add(whole::<i16>(text).ok_or_else(|| refused("smallint"))?),
            Self::Int4 => arguments.add(whole::<i32>(text).ok_or_else(|| refused("integer"))?),
            Self::Int8 => arguments.add(whole::<i64>(text).ok_or_else(|| refused("bigint"))?),
            Self::Bool => arguments.add(text.parse::<bool>().map_err(|_| refused("boolean"))?),
            Self::Uuid => arguments.add(RawUuid(
                uuid::Uuid::try_parse(text)
                    .ok()
                    .filter(|id| id.to_string() == text)
                    .ok_or_else(|| refused("uuid in lower case with hyphens"))?,
            )),
        }
        .map_err(|_| refused("value"))
    }
}

/// A whole number in its one usual spelling. `+7` and `007` would name the same row as `7`, and a rule that
/// compares the caller's text would not know it.
fn whole<N: std::str::FromStr + ToString>(text: &str) -> Option<N> {
    text.parse::<N>().ok().filter(|number| number.to_string() == text)
}

/// The driver's own UUID support is a feature that we do not build; its form on the wire is 16 bytes.
struct RawUuid(uuid::Uuid);

impl sqlx::Type<Postgres> for RawUuid {
    fn type_info() -> PgTypeInfo {
        PgTypeInfo::with_name("uuid")
    }
}

impl sqlx::Encode<'_, Postgres> for RawUuid {
    fn encode_by_ref(
        &self,
        buffer: &mut sqlx::postgres::PgArgumentBuffer,
    ) -> Result<sqlx::encode::IsNull, sqlx::error::BoxDynError> {
        buffer.extend_from_slice(self.0.as_bytes());
        Ok(sqlx::encode::IsNull::No)
    }
}
