// A page whose training ended before its map was done: the map is the last frame.
function showUnfinished({ state, sentence, stage, losses }) {
  showTraining();
  showState(state, stage, "unfinished");
  $("training-stage").textContent = sentence;
  $("training-doing").textContent = `The map is the last frame: ${stage}.`;
  showLosses(losses);
}

showUnfinished(about.unfinished);
