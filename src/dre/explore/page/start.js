// From what the page carries to what is seen. It begins at the last stage, the map itself.
async function start() {
  stages.push(...(await Promise.all(about.stages.map((_, i) => unpackedPlaces(i)))));
  rows.columns = await Promise.all(about.columns.map(unpackedColumn));
  if (about.named) rows.names = await unpackedTexts("names");
  showPanel();
  setPlaces(stages.length - 1);
  setTheme(matchMedia("(prefers-color-scheme: dark)").matches);
  resize();
  frame(now.x, now.y);
  showStage();
  colourBy(rows.columns[Number($("colour").value)] || null);
  listenToPanel();
  listenToPointer();
  showSelection();
  $("wait").hidden = true;
  canvas.dataset.ready = "yes";
  canvas.focus();
}

// For those who drive the page by a script, tests among them: where a row is on the screen, and what is selected.
window.explorer = {
  screen: (i) => [across(now.x[i]), down(now.y[i])],
  selected: selection,
  goToStage,
};

start().catch((problem) => {
  $("wait").textContent = `This page can't be shown: ${problem.message}. A browser of 2023 or later is needed.`;
  throw problem;
});
