// The start: the map and its colors are decoded and shown first, everything else after the first paint.
const wanted = readFragment();
const painted = () => new Promise((done) => requestAnimationFrame(() => setTimeout(done)));

async function firstColumn() {
  const name = wanted.color === null ? about.color : wanted.color;
  const found = about.columns.findIndex((column) => column.name === name && column.kind !== "text");
  $("color").value = found < 0 ? "single" : `column ${found}`;
  if (found >= 0) rows.columns[found] = await decodeColumn(about.columns[found], found);
  return found < 0 ? null : rows.columns[found];
}

async function start() {
  rows.columns = about.columns.map((column) => ({ ...column, values: null, names: null }));
  showPanel();
  chooseTheme(wanted.theme);
  await startMaps(wanted);
  if (wanted.view) showView(wanted.view);
  colorBy(await firstColumn(), wanted.scale);
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
  await restOfMaps(wanted);
  dataNeighbors = await decodeNeighbors();
  showColumns();
  showRows();
  listenToStages();
  listenToKeyboard();
  listenToTable();
  if (wanted.density) setDensity(true);
  if (wanted.pinned >= 0) pinCard(wanted.pinned);
  isRestoring = false;
  document.documentElement.dataset.complete = "yes";
}

// For scripts and tests.
window.explorer = {
  screen: (i) => maps[0].toPage(i),
  selected: () => idsOf(filters.has("lasso") ? filters.get("lasso").mask : null),
  highlighted: () => (highlighted ? idsOf(highlighted) : null),
  pinned: () => pinned,
  neighbors: () => neighborsShown,
  goToStage,
};

start().catch((problem) => {
  $("loading").hidden = false;
  $("loading").textContent = `This page could not be shown: ${problem.message}. It needs a browser from 2023 or later.`;
  throw problem;
});
