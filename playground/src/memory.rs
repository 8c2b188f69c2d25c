//! Texts between JavaScript and here: addresses in the memory of the instance.
//!
//! JavaScript asks [`question_room`] for room, writes a question there, and calls [`ask`]; then the answer is [`answer_length`] bytes at
//! [`answer_start`]. When something panics, the instance has ended: [`answer_start`] then leads to what the panic said.

use std::cell::RefCell;
use std::panic;

use crate::session::Session;

/// What is kept between two calls.
#[derive(Default)]
struct Texts {
    question: Vec<u8>,
    answer: String,
}

thread_local! {
    static TEXTS: RefCell<Texts> = RefCell::default();
    static SESSION: RefCell<Option<Session>> = const { RefCell::new(None) };
}

/// The address of room for a question of `length` bytes.
#[unsafe(no_mangle)]
pub extern "C" fn question_room(length: usize) -> *mut u8 {
    TEXTS.with_borrow_mut(|texts| {
        // What ends without a panic, for want of stack, has said nothing.
        texts.answer.clear();
        texts.question = vec![0; length];
        texts.question.as_mut_ptr()
    })
}

/// Answers the question.
#[unsafe(no_mangle)]
pub extern "C" fn ask() {
    let question = TEXTS.with_borrow_mut(|texts| std::mem::take(&mut texts.question));
    let question = String::from_utf8_lossy(&question);
    let answer = SESSION.with_borrow_mut(|session| {
        let session = session.get_or_insert_with(|| {
            panic::set_hook(Box::new(|info| keep(info.to_string())));
            Session::default()
        });
        session.answer(&question)
    });
    keep(answer);
}

/// The address of the answer.
#[unsafe(no_mangle)]
pub extern "C" fn answer_start() -> *const u8 {
    TEXTS.with_borrow(|texts| texts.answer.as_ptr())
}

/// The length of the answer, in bytes.
#[unsafe(no_mangle)]
pub extern "C" fn answer_length() -> usize {
    TEXTS.with_borrow(|texts| texts.answer.len())
}

fn keep(answer: String) {
    TEXTS.with_borrow_mut(|texts| texts.answer = answer);
}
