//! One form for all ways to write the same model, and its hash.

use std::fmt::Write;

use sha2::{Digest, Sha256};
use toml::de::DeValue;

/// The first 16 hexadecimal digits of the SHA-256 of the canonical form: keys sorted, numbers in one
/// notation (`1`, `1.0` and `1e0` are the same), comments and layout gone.
pub(super) fn hash(root: &DeValue<'_>) -> String {
    let mut text = String::new();
    write(root, &mut text);
    short(text.as_bytes())
}

/// The hash of a model that reads data files: of its own hash and the times in each, in order.
pub(super) fn with_data<'a>(hash: String, data: impl IntoIterator<Item = &'a [f64]>) -> String {
    data.into_iter().fold(hash, |hash, times| {
        let bytes = times.iter().flat_map(|t| t.to_le_bytes());
        short(&hash.into_bytes().into_iter().chain(bytes).collect::<Vec<u8>>())
    })
}

/// The first 16 hexadecimal digits of the SHA-256.
fn short(bytes: &[u8]) -> String {
    Sha256::digest(bytes).iter().take(8).fold(String::new(), |mut hex, byte| {
        // Writing to a string cannot fail.
        let _ = write!(hex, "{byte:02x}");
        hex
    })
}

fn write(value: &DeValue<'_>, out: &mut String) {
    match value {
        DeValue::String(text) => write_text(text, out),
        DeValue::Integer(number) => match i128::from_str_radix(number.as_str(), number.radix()) {
            Ok(i) => {
                let _ = write!(out, "{i}");
            }
            Err(_) => out.push_str(number.as_str()),
        },
        DeValue::Float(number) => match number.as_str().parse::<f64>() {
            // Adding 0.0 makes a negative zero positive; whole numbers print without a fraction.
            Ok(x) => {
                let _ = write!(out, "{}", x + 0.0);
            }
            Err(_) => out.push_str(number.as_str()),
        },
        DeValue::Boolean(b) => {
            let _ = write!(out, "{b}");
        }
        DeValue::Datetime(date) => {
            let _ = write!(out, "{date}");
        }
        DeValue::Array(array) => {
            out.push('[');
            for item in array {
                write(item.get_ref(), out);
                out.push(',');
            }
            out.push(']');
        }
        DeValue::Table(table) => {
            let mut keys: Vec<_> = table.iter().collect();
            keys.sort_by(|(a, _), (b, _)| a.get_ref().cmp(b.get_ref()));
            out.push('{');
            for (key, item) in keys {
                write_text(key.get_ref(), out);
                out.push(':');
                write(item.get_ref(), out);
                out.push(',');
            }
            out.push('}');
        }
    }
}

/// Text as JSON writes it, which no version of anything changes.
fn write_text(text: &str, out: &mut String) {
    out.push_str(&serde_json::Value::from(text).to_string());
}
