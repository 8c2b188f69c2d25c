//! What else goes into the tail of the grid: a stream runs what is put there in order, so the continuation would come behind it.

use gridfuse_analysis::base::place::FileRange;
use gridfuse_analysis::base::span::Span;
use gridfuse_analysis::facts::launch::Stream;
use gridfuse_analysis::facts::launch::launches;

use super::Tail;
use crate::api::refusal::Reason;
use crate::facts::order::operations;

impl Tail<'_, '_> {
    /// Refuses a kernel of which any thread may put something into the tail that stays in front of the continuation: what follows
    /// the wait runs before the tail does.
    pub fn refuse_other_tails(&self) -> Result<(), Reason> {
        let (db, function) = (self.wait.db, self.wait.function);
        let behind = |what: String, place: FileRange| {
            let text = format!(
                "{what} goes into the tail of the grid, so what follows the wait would run after it and not before; put it after the \
                 wait"
            );
            self.reason(text, place)
        };
        let maybe = |stream: &Stream| matches!(stream, Stream::TailLaunch | Stream::Other);
        let mut launches = launches(db, function).iter();
        // What the loop puts there is in front of its next wait; what follows the loop, other threads do in the parent.
        let before = |span: Span| self.is_looped(span) || !self.moves(span) || self.stays_for_others(span);
        if let Some(launch) = launches.find(|l| maybe(&l.stream) && before(l.span) && !self.is_into_own_array(l)) {
            let name = launch.kernel_name.as_deref().unwrap_or("a kernel");
            let may = if launch.stream == Stream::Other {
                "may be one that"
            } else {
                ""
            };
            let what = format!("this launch of `{name}` {may}").trim_end().to_owned();
            return Err(behind(what, self.wait.place(launch.span)));
        }
        let stays = |place: FileRange| {
            let mut moved = self
                .moved
                .iter()
                .filter(|span| !self.is_looped(**span) && !self.stays_for_others(**span))
                .map(|span| self.wait.place(*span));
            !moved.any(|moved| moved.file == place.file && moved.range.contains(place.range))
        };
        for (found, stream) in operations(db, function) {
            if stream.as_ref().is_none_or(maybe) && stays(found.place) {
                return Err(behind(format!("`{}`", found.what), found.place));
            }
        }
        Ok(())
    }
}
