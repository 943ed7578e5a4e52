// When maps are drawn: at most once a frame; while they move with fewer points, as many as this machine draws in time.
const FRAME_MS = 22; // for the points, of the 33 that 30 frames a second leave
const FEWEST = 15000; // points
const STILL_MS = 160; // without movement, until all points are drawn again
let requested = 0, isMoving = false, stillTimer = 0; // requested: the id of the frame
let drawnLevel = 0; // of the latest frame
let budget = Infinity; // points that a frame may draw while maps move

function redraw() {
  if (requested || !maps[0].now.x) return;
  requested = requestAnimationFrame(drawWhenReady);
}

// Call when the view or the points move; all detail returns when the movement ends.
function redrawMoving() {
  isMoving = true;
  clearTimeout(stillTimer);
  stillTimer = setTimeout(() => {
    isMoving = false;
    if (drawnLevel || maps.some((map) => map.isDepthOld)) redraw();
    else drawOverlays(); // all points are there; names may stand anew
  }, STILL_MS);
  redraw();
}

// The share of the points to draw, as a power of 1/2.
function detailLevel() {
  if (!isMoving) return 0;
  let points = 0;
  for (const map of maps) points += baseOrder(map).ids.length;
  return points <= budget ? 0 : Math.min(10, Math.ceil(Math.log2(points / budget)));
}

// Frames that wait in a queue would trail the pointer.
function drawWhenReady() {
  if (renderer.isBusy()) requested = requestAnimationFrame(drawWhenReady);
  else drawFrame();
}

function drawFrame() {
  cancelAnimationFrame(requested);
  requested = 0;
  const level = (drawnLevel = detailLevel());
  let drawn = 0;
  renderer.begin();
  for (const map of maps) drawn += drawMap(map, level);
  renderer.end((milliseconds) => adjustBudget(milliseconds, drawn));
  const { dataset } = maps[0].canvas;
  dataset.detail = level ? "part" : "full";
  dataset.drawn = drawn;
  dataset.frames = Number(dataset.frames || 0) + 1; // for scripts that wait for a frame
}

// A slow frame lowers the budget in proportion, a quick one raises it. Drawing fewer than some points saves no time.
function adjustBudget(milliseconds, points) {
  if (milliseconds > FRAME_MS) budget = Math.max(FEWEST, (points * FRAME_MS) / milliseconds);
  else if (milliseconds < 0.5 * FRAME_MS) budget = Math.max(budget, 2 * points);
}
