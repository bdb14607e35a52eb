//! Protobuf as it lies in a request, read in place: for the messages of the hot path, which need no copy of their texts.

use prost::bytes::Buf;
use prost::encoding::{DecodeContext, WireType, decode_key, decode_varint, skip_field};

use super::Failure;

/// The fields of one protobuf message, in the order in which they were written.
pub struct Fields<'a>(&'a [u8]);

/// What a field holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Value<'a> {
    /// A text, bytes, or a message within.
    Bytes(&'a [u8]),
    Number(u64),
    /// Of a kind that no field of the contract has.
    Other,
}

impl<'a> Fields<'a> {
    pub fn of(message: &'a [u8]) -> Self {
        Fields(message)
    }

    /// A field as most are: a small number, a short text.
    fn read_short(&mut self) -> Option<(u32, Value<'a>)> {
        let &[key @ 8..0x80, length @ 0..0x80, ref rest @ ..] = self.0 else { return None };
        if key & 7 != WireType::LengthDelimited as u8 {
            return None;
        }
        let (bytes, rest) = rest.split_at_checked(length.into())?;
        self.0 = rest;
        Some((u32::from(key >> 3), Value::Bytes(bytes)))
    }

    fn read(&mut self) -> Result<(u32, Value<'a>), Failure> {
        let (number, wire_type) = decode_key(&mut self.0).map_err(Failure::unreadable)?;
        let value = match wire_type {
            WireType::Varint => Value::Number(decode_varint(&mut self.0).map_err(Failure::unreadable)?),
            WireType::LengthDelimited => {
                let length = decode_varint(&mut self.0).map_err(Failure::unreadable)?;
                let length = usize::try_from(length).unwrap_or(usize::MAX);
                let (bytes, rest) = self
                    .0
                    .split_at_checked(length)
                    .ok_or_else(|| Failure::unreadable("a field is cut off"))?;
                self.0 = rest;
                Value::Bytes(bytes)
            }
            _ => {
                skip_field(wire_type, number, &mut self.0, DecodeContext::default())
                    .map_err(Failure::unreadable)?;
                Value::Other
            }
        };
        Ok((number, value))
    }
}

impl<'a> Iterator for Fields<'a> {
    /// Number and value.
    type Item = Result<(u32, Value<'a>), Failure>;

    #[inline]
    fn next(&mut self) -> Option<Self::Item> {
        match self.read_short() {
            Some(field) => Some(Ok(field)),
            None => self.0.has_remaining().then(|| self.read()),
        }
    }
}

impl<'a> Value<'a> {
    pub fn bytes(self) -> Result<&'a [u8], Failure> {
        match self {
            Value::Bytes(bytes) => Ok(bytes),
            Value::Number(_) | Value::Other => Err(Failure::unreadable("a field is of another type")),
        }
    }

    pub fn text(self) -> Result<&'a str, Failure> {
        str::from_utf8(self.bytes()?).map_err(|_| Failure::unreadable("a text is not UTF-8"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(bytes: &[u8]) -> Result<Vec<(u32, Value<'_>)>, Failure> {
        Fields::of(bytes).collect()
    }

    #[test]
    fn fields_come_in_their_order_and_unknown_kinds_are_passed_over() {
        let bytes = [
            0x0a, 1, b'x', // 1: "x"
            0x10, 0x96, 0x01, // 2: 150
            0x1d, 1, 2, 3, 4, // 3: four bytes
            0x23, 0x08, 1, 0x24, // 4: a group
            0x0a, 0, // 1: ""
        ];
        let wanted = [
            (1, Value::Bytes(b"x")),
            (2, Value::Number(150)),
            (3, Value::Other),
            (4, Value::Other),
            (1, Value::Bytes(b"")),
        ];
        assert_eq!(read(&bytes), Ok(wanted.to_vec()));
    }

    #[test]
    fn what_is_cut_off_or_malformed_is_refused() {
        let malformed: [&[u8]; 7] = [
            &[0x0a],
            &[0x0a, 2, b'x'],
            &[0x0a, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 1],
            &[0x10],
            &[0x00, 0],
            &[0x0f],
            &[0x23, 0x08, 1],
        ];
        for bytes in malformed {
            assert!(read(bytes).is_err(), "{bytes:?}");
        }
        assert!(Value::Bytes(&[0xff]).text().is_err());
        assert!(Value::Number(1).text().is_err() && Value::Other.bytes().is_err());
    }
}
