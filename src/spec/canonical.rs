//! One form for all ways to write the same model, and its hash.

use std::fmt::Write;

use sha2::{Digest, Sha256};
use toml::de::DeValue;

/// The first 16 hexadecimal digits of the SHA-256 of the canonical form: keys sorted, numbers in one
/// notation (`1`, `1.0` and `1e0` are the same), comments and layout gone.
pub(super) fn hash(root: &DeValue<'_>) -> String {
    let mut text = String::new();
    write(root, &mut text);
    Sha256::digest(text.as_bytes()).iter().take(8).fold(String::new(), |mut hex, byte| {
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
