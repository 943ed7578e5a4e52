// The start: the map and its colors are decoded and shown first, everything else after the first paint.
const wanted = readFragment();
const painted = () => new Promise((done) => requestAnimationFrame(() => setTimeout(done)));

// The column that colors the points first; null for a single color.
async function firstColumn() {
  const found = chooseColor(wanted.color);
  if (found >= 0) rows.columns[found] = await decodeColumn(about.columns[found], found);
  return found < 0 ? null : rows.columns[found];
}

async function start() {
  rows.columns = about.columns.map((column) => ({ ...column, values: null, names: null }));
  showPanel();
  $("sections").inert = true; // until its columns are there
  chooseTheme(wanted.theme);
  if (about.numbered) rows.numbers = await decodeArray("row-numbers", "uint32");
  const [column] = await Promise.all([firstColumn(), stageOf(0, wanted.stage === null ? about.maps[0].stages.length - 1 : wanted.stage)]);
  colorBy(column, wanted.scale);
  await startMaps(wanted);
  if (wanted.beside) await showBeside(...wanted.beside);
  if (wanted.view) showView(wanted.view);
  listenToTools();
  listenToTheme();
  listenToPanel();
  $("loading").hidden = true;
  maps[0].canvas.dataset.ready = "yes";
  await painted();
  await finish();
}

// What the first picture did not need.
async function finish() {
  for (const [k, column] of rows.columns.entries()) if (!column.values) rows.columns[k] = await decodeColumn(about.columns[k], k);
  if (about.named) rows.names = await decodeStrings("names");
  await restOfMaps();
  dataNeighbors = await decodeNeighbors();
  showColumns();
  showRows();
  listenToStages();
  listenToKeyboard();
  listenToTable();
  if (about.model) listenToNewRows();
  await restore({ ...wanted, pinned: pinned < 0 ? wanted.pinned : pinned }); // somebody may have been faster
  window.addEventListener("hashchange", followFragment);
  $("sections").inert = false;
  document.documentElement.dataset.complete = "yes";
}

// For scripts and tests.
window.explorer = {
  screen: (i, map = 0) => maps[map].toPage(i),
  selected: () => idsOf(filters.has("lasso") ? filters.get("lasso").mask : null),
  highlighted: () => (highlighted ? idsOf(highlighted) : null),
  pinned: () => pinned,
  neighbors: () => neighborsShown,
  look: () => maps[0].look,
  goToStage,
};

start().catch((problem) => {
  $("loading").hidden = false;
  $("loading").textContent = `This page could not be shown: ${problem.message}. It needs a browser from 2023 or later.`;
  throw problem;
});
