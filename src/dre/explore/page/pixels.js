// Images as rows: on white, gray or color, cropped in the middle and resized as Pillow does, in the layout of the model.
const PRECISION = 2 ** 22; // of Pillow's weights
const PER_COLUMN = 2; // Pillow takes the rows first if it has more than so many rows to remove for each column
const byteOf = (value) => (value < 0 ? 0 : value > 255 ? 255 : value);

// A value on white behind its opacity, rounded as Pillow's alpha_composite rounds it.
function onWhite(value, alpha) {
  const sum = 128 * (value * alpha + 255 * (255 - alpha)) + 16384;
  return ((sum >> 8) + sum) >> 15;
}

// Gray as Pillow has it, of the bytes R G B A.
function toPlanes(pixels, area, channels) {
  const planes = Array.from({ length: channels }, () => new Uint8Array(area));
  for (let k = 0, at = 0; k < area; k++, at += 4) {
    const alpha = pixels[at + 3], [red, green, blue] = [0, 1, 2].map((c) => (alpha === 255 ? pixels[at + c] : onWhite(pixels[at + c], alpha)));
    if (channels === 1) planes[0][k] = (red * 19595 + green * 38470 + blue * 7471 + 32768) >> 16;
    else [planes[0][k], planes[1][k], planes[2][k]] = [red, green, blue];
  }
  return planes;
}

function bicubic(x) {
  const size = Math.abs(x);
  if (size < 1) return (1.5 * size - 2.5) * size * size + 1;
  return size < 2 ? (((size - 5) * size + 8) * size - 4) * -0.5 : 0;
}

// For each place of the result the first value that it is made of, and the weights of that one and those after it.
function weightsOf(length, from, to, count) {
  const scale = Math.fround(to - from) / count, wide = Math.max(scale, 1), support = 2 * wide;
  return Array.from({ length: count }, (_, k) => {
    const center = from + (k + 0.5) * scale, first = Math.max(0, Math.trunc(center - support + 0.5));
    const last = Math.min(length, Math.trunc(center + support + 0.5));
    const weights = Array.from({ length: last - first }, (_, j) => bicubic((j + first - center + 0.5) / wide));
    const sum = weights.reduce((total, weight) => total + weight, 0);
    return { first, weights: weights.map((weight) => { const scaled = (weight / sum) * PRECISION; return Math.trunc(scaled + (scaled < 0 ? -0.5 : 0.5)); }) };
  });
}

// Lines of a plane in another length; `step` is the distance of the values of a line, `across` that of lines.
function resizeLines(plane, lines, places, step, across, outStep, outAcross) {
  const out = new Uint8Array(lines * places.length);
  for (let line = 0; line < lines; line++) {
    places.forEach(({ first, weights }, k) => {
      let sum = PRECISION / 2;
      for (let j = 0; j < weights.length; j++) sum += plane[line * across + (first + j) * step] * weights[j];
      out[line * outAcross + k * outStep] = byteOf(Math.floor(sum / PRECISION));
    });
  }
  return out;
}

// The two passes round, so that their order matters: before Pillow 13 the first one was always across.
function fitPlane(plane, width, height, toWidth, toHeight, rowsFirst) {
  const ratio = width / height, wanted = toWidth / toHeight;
  const [cropWidth, cropHeight] = ratio === wanted ? [width, height] : ratio >= wanted ? [wanted * height, height] : [width, width / wanted];
  const [left, top] = [(width - cropWidth) / 2, (height - cropHeight) / 2], end = Math.fround; // the corners of Pillow are float32
  const across = weightsOf(width, end(left), end(left + cropWidth), toWidth), down = weightsOf(height, end(top), end(top + cropHeight), toHeight);
  if (rowsFirst && height > toHeight && height - toHeight > PER_COLUMN * (width - toWidth)) {
    const low = resizeLines(plane, width, down, width, 1, width, 1);
    return resizeLines(low, toHeight, across, 1, width, 1, toWidth);
  }
  const narrow = resizeLines(plane, height, across, 1, width, 1, toWidth);
  return resizeLines(narrow, toWidth, down, toWidth, 1, toWidth, 1);
}

// The row of an image, and its pixels at the size of the model, as bytes R G B A.
function rowOfImage({ data, width, height }, { width: toWidth, height: toHeight, channels, layout, low, high, rows_first: rowsFirst }) {
  const isResized = width !== toWidth || height !== toHeight, area = toWidth * toHeight;
  const planes = toPlanes(data, width * height, channels).map((plane) => (isResized ? fitPlane(plane, width, height, toWidth, toHeight, rowsFirst) : plane));
  const row = new Float64Array(area * channels), shown = new Uint8ClampedArray(4 * area).fill(255);
  for (let k = 0; k < area; k++) {
    planes.forEach((plane, c) => { row[layout === "chw" ? c * area + k : k * channels + c] = low + (plane[k] * (high - low)) / 255; });
    for (let c = 0; c < 3; c++) shown[4 * k + c] = planes[c % channels][k];
  }
  return { row, shown, isResized };
}
