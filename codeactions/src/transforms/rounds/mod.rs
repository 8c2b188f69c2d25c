//! Loops by the host that launch kernels in rounds: one cooperative grid runs all of them. The kernels' bodies become device functions,
//! the loop itself moves into a kernel, statement by statement, and its blocks meet where a kernel ended and the next one began (Pai and
//! Pingali, OOPSLA 2016, §4.1: iteration outlining).

mod aliases;
mod api;
mod checked;
mod checks;
mod classes;
mod early;
mod emit;
mod host_loop;
mod kept;
mod kernels;
mod parameters;
mod residence;
mod streams;
mod translate;
mod variables;

use crate::api::refusal::{Ineligible, Refusals};
use crate::api::rewrite::RewriteCtx;
use crate::api::source_edit::SourceEdit;
use crate::edit::builder::{EditBuilder, finish};
use crate::edit::include::Header;
use crate::edit::names::Names;

use host_loop::HostLoop;

/// The edit that outlines the host's loop at a place.
///
/// # Errors
/// The reasons why it can't be done.
pub fn outline_loop(ctx: &RewriteCtx<'_, '_>) -> Result<SourceEdit, Ineligible> {
    let (db, place) = (ctx.db, ctx.place()?);
    let host = HostLoop::find(db, place)?;
    let mut names = Names::default();
    let mut edit = EditBuilder::new(db);
    let mut refusals = Refusals::default();
    names.add_file(db, host.file());
    host.refuse_surroundings(&mut refusals);
    let header = Header::for_file(db, host.file());
    let header = header.map_err(|why| refusals.add(why.text, why.place));
    aliases::refuse_aliases(&host, &mut refusals, &mut edit);
    let kernels = kernels::read(&host, &mut names, &mut refusals, &mut edit);
    residence::assume(&host, &kernels, &mut edit);
    refusals.check()?;
    let Ok(header) = header else {
        return Err(host.not_understood());
    };
    let shape = kernels::shape(&host, &kernels, &mut refusals);
    refusals.check()?;
    let Some(shape) = shape else {
        return Err(host.not_understood());
    };
    let workers = emit::outline_bodies(&kernels, &shape, &mut names, &mut edit);
    let moved = translate::translate(&host, &kernels, &shape, &workers, &mut refusals, &mut edit);
    let params = emit::params(&moved);
    parameters::refuse_named_as_types(&host, &params, &mut refusals);
    parameters::refuse_large(&host, &params, &mut refusals, &mut edit);
    refusals.check()?;
    header.include_in(db, &mut edit, host.file());
    emit::write(&host, &kernels, &shape, &moved, &mut names, &mut edit);
    finish(edit)
}
